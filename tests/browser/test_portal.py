"""The pages in a frame of a host product, of another site: allowed, not allowed, and ended."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Frame, Page, expect

from tests.support.browser import opened_context, violations
from tests.support.service_process import ServiceProcess, free_port, run

pytestmark = pytest.mark.timeout(180)

ENDED = "This session has ended"
LOGO = b'<svg xmlns="http://www.w3.org/2000/svg" width="80" height="20"></svg>'
FRAME = '<!doctype html><title>Host</title><iframe src="URL" width="1000" height="800"></iframe>'
SOON_SECONDS = 1.0


class HostPage(BaseHTTPRequestHandler):
    """A page that shows what its query names in a frame, and a logo."""

    def do_GET(self) -> None:
        path, _, url = self.path.partition("?")
        kind, body = "text/html", FRAME.replace("URL", url).encode()
        if path == "/logo.svg":
            kind, body = "image/svg+xml", LOGO
        self.send_response(200)
        self.send_header("content-type", kind)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def host_page() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), HostPage)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Host:
    """`localhost` is another site than 127.0.0.1, where the service is."""

    port: int
    settings: dict[str, str]
    key: str = ""
    account: str = field(default="", repr=False)

    @property
    def origin(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def service(self) -> str:
        return f"http://127.0.0.1:{self.settings['PORT']}"

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = httpx2.request(
            method,
            f"{self.service}/v1/accounts{path}",
            json=body,
            headers={"Authorization": f"Bearer {self.key}"},
        )
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def provision(self) -> None:
        made = run(self.settings, "keys", "create", "--operator", "--json")
        self.key = json.loads(made.stdout)["token"]
        body = {"name": "Harbour Films", "externalId": "cust_1", "webhooksAccess": "open"}
        self.account = self.call("POST", "", body)["id"]

    def link(self, **more: Any) -> Any:
        body = {"member": "external:user_7", "role": "owner", "returnUrl": f"{self.origin}/back"}
        return self.call("POST", "/external:cust_1/portal-links", body | more)

    def showing(self, url: str, origin: str = "") -> str:
        return f"{origin or self.origin}/frame?{url}"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with host_page() as port:
        settings = {
            "DATA_DIR": str(tmp_path / "data"),
            "PORT": str(free_port()),
            "FRAME_ANCESTORS": f"http://localhost:{port}",
            "PORTAL_ORIGINS": f"http://localhost:{port}",
        }
        yield Host(port, settings)


def frame_of(page: Page) -> Frame:
    [frame] = page.main_frame.child_frames
    return frame


def test_the_host_shows_the_pages_in_a_frame_until_it_ends_the_session(
    browser: Browser, host: Host
) -> None:
    theme = {"accent": "#ffee00", "logoUrl": f"{host.origin}/logo.svg", "mode": "dark"}
    with opened_context(browser) as context:
        page = context.new_page()
        with ServiceProcess(host.settings):
            host.provision()
            made = host.link(theme=theme)
            page.goto(host.showing(made["url"]))
            inside = page.frame_locator("iframe")
            inside.get_by_role("heading", name="Overview").wait_for()
            expect(
                inside.get_by_role("link", name=f"Back to localhost:{host.port}")
            ).to_be_visible()
            logo = inside.locator("img.brand-logo")
            assert logo.evaluate("each => each.naturalWidth") == 80
            button = inside.get_by_role("button", name="Sign out")
            assert button.count() == 1
            # A form in the frame has its token and its cookie.
            inside.get_by_role("link", name="Projects").click()
            inside.get_by_role("textbox", name="Name").fill("Trailer")
            inside.get_by_role("button", name="Create").click()
            inside.get_by_text("Trailer").first.wait_for()
        with ServiceProcess(host.settings):
            # The session is in the store, so that it outlives the process.
            frame = frame_of(page)
            frame.goto(f"{host.service}/settings/webhooks")
            inside.get_by_role("heading", name="Webhooks").wait_for()
            host.call("DELETE", f"/external:cust_1/portal-links/{made['id']}")
            began = time.monotonic()
            frame.goto(f"{host.service}/settings/webhooks")
            inside.get_by_text(ENDED).wait_for()
            assert time.monotonic() - began < SOON_SECONDS + 2


def test_another_site_shows_nothing_in_a_frame(browser: Browser, host: Host) -> None:
    with ServiceProcess(host.settings), opened_context(browser) as context:
        host.provision()
        made, page = host.link(), context.new_page()
        page.goto(host.showing(made["url"], f"http://127.0.0.1:{host.port}"))
        page.wait_for_function("document.querySelector('iframe') !== null")
        assert "Continue" not in frame_of(page).content()
        # It was not used up either.
        page.goto(made["url"])
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("heading", name="Overview").wait_for()


def test_without_the_setting_no_site_shows_the_pages_in_a_frame(
    browser: Browser, host: Host
) -> None:
    del host.settings["FRAME_ANCESTORS"]
    with ServiceProcess(host.settings), opened_context(browser) as context:
        host.provision()
        page = context.new_page()
        page.goto(host.showing(host.link()["url"]))
        assert "Continue" not in frame_of(page).content()


def test_a_page_of_its_own_leads_in_without_a_click_and_back(browser: Browser, host: Host) -> None:
    """A redirect of the host, as most products will do it; every accent can be read."""
    with ServiceProcess(host.settings), opened_context(browser) as context:
        host.provision()
        page = context.new_page()
        faults: dict[str, list[str]] = {}
        for accent in ("#ffee00", "#0b6e4f", "#888888"):
            for mode in ("light", "dark"):
                theme = {"accent": accent, "mode": mode}
                page.goto(f"{host.origin}/")
                page.evaluate(f"location.href = {host.link(theme=theme)['url']!r}")
                page.get_by_role("heading", name="Overview").wait_for()
                page.goto(f"{host.service}/settings/webhooks")
                if found := violations(page):
                    faults[f"{accent} {mode}"] = found
        assert faults == {}
        page.get_by_role("link", name=f"Back to localhost:{host.port}").click()
        page.wait_for_url(f"{host.origin}/back")
