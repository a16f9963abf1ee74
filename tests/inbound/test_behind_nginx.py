"""Behind a real nginx with TLS, as the operator's kit configures it, clients are told apart."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.inbound.browser import Person
from tests.support.nginx import Proxy, configured, running_nginx
from tests.support.service_process import ServiceProcess, free_port, run

EMAIL, PASSWORD = "ada@example.com", "correct horse battery"
GUESSER, OWNER = "127.0.0.2", "127.0.0.3"
FORGED = {"x-forwarded-for": f"{OWNER}, 192.0.2.1", "forwarded": f"for={OWNER}"}


@dataclass(frozen=True, slots=True)
class Site:
    settings: dict[str, str]
    proxy: Proxy
    account: dict[str, Any]

    def person(self, address: str, headers: dict[str, str] | None = None) -> Person:
        return Person(self.proxy.url, address, trust=self.proxy.trust, headers=headers)

    def audit(self) -> list[tuple[str, str | None]]:
        answer = httpx2.get(
            f"http://127.0.0.1:{self.settings['PORT']}/v1/audit?limit=100",
            headers={"authorization": f"Bearer {self.account['apiKey']}"},
        )
        return [(each["action"], each["address"]) for each in answer.json()["data"]]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    port = free_port()
    proxy = configured(tmp_path, (port, port), "127.0.0.1")
    settings = {
        "DATA_DIR": str(tmp_path / "data"),
        "PORT": str(port),
        "BASE_URL": proxy.url,
        "TRUSTED_PROXIES": "127.0.0.1/32",
    }
    account = json.loads(run(settings, "setup", "--json").stdout)
    with ServiceProcess(settings), running_nginx(proxy):
        yield Site(settings, proxy, account)


async def test_one_client_is_locked_out_and_the_other_is_not(site: Site) -> None:
    async with site.person(OWNER) as owner, site.person(GUESSER) as guesser:
        await owner.choose_password(site.account["signInUrl"], EMAIL, PASSWORD)
        await guesser.see("/sign-in")
        guesses = [await guesser.guess(f"{each}@example.com", "wrong") for each in range(31)]
        assert guesses == [401] * 30 + [429]
        assert await guesser.guess(EMAIL, PASSWORD) == 429

    async with site.person(OWNER) as owner:
        await owner.see("/sign-in")
        assert await owner.guess(EMAIL, "wrong") == 401
        assert await owner.guess(EMAIL, PASSWORD) == 303
    trail = site.audit()
    assert trail[:2] == [("user.signed_in", OWNER), ("user.sign_in_refused", OWNER)]
    assert ("user.credentials_changed", OWNER) in trail


async def test_a_forged_header_changes_nothing(site: Site) -> None:
    async with site.person(OWNER) as owner, site.person(GUESSER, FORGED) as guesser:
        await owner.choose_password(site.account["signInUrl"], EMAIL, PASSWORD)
        await guesser.see("/sign-in")
        assert await guesser.guess(EMAIL, "wrong") == 401
        assert site.audit()[0] == ("user.sign_in_refused", GUESSER)
        for each in range(29):
            assert await guesser.guess(f"{each}@example.com", "wrong") == 401
        assert await guesser.guess("x@example.com", "wrong") == 429
    # Past the proxy, whose address alone is trusted.
    direct = f"http://127.0.0.1:{site.settings['PORT']}"
    async with Person(direct, GUESSER, headers=FORGED) as past:
        await past.see("/sign-in")
        assert (await past.see("/sign-in")).status_code == 200


async def test_answers_over_https_ask_to_stay_with_it(site: Site) -> None:
    async with site.person(OWNER) as someone:
        for path in ("/sign-in", "/healthz", "/v1/webhooks", "/nowhere"):
            answer = await someone.client.get(path)
            assert answer.headers["strict-transport-security"] == "max-age=31536000"
