"""The documentation site: built strictly, complete, and without anything from elsewhere."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
# Their blocks of shell commands are run by tests/docs/test_walks.py.
WALKED = {
    "get-started.md",
    "how-to/embed-the-portal.md",
    "how-to/postgresql.md",
    "how-to/provision-accounts.md",
    "operations.md",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


class Fetched(HTMLParser):
    """What a browser fetches when it shows a page."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag in FETCHED and found.get("rel") != "canonical":
            self.places.append(found.get(FETCHED[tag]) or "")


def test_the_site_is_built_strictly_and_fetches_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        seen = Fetched()
        seen.feed(page.read_text())
        assert [place for place in seen.places if "//" in place.partition("?")[0]] == [], page


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    """Or else the test above would prove little."""
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[gone](gone.md)\n")
    small = {name: config[name] for name in ("site_name", "strict", "validation")}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(small))
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build"],
        cwd=tmp_path,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert built.returncode == 1
    assert "gone.md" in built.stderr


def test_every_page_has_its_place_in_the_menu(site: Path) -> None:
    menu = (ROOT / "mkdocs.yml").read_text()
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    outside = {page for page in pages if page not in menu and not page.startswith("decisions/")}
    assert outside == set()


def test_every_alert_has_a_section_in_the_runbook(site: Path) -> None:
    shown = (site / "runbook.html").read_text()
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())
    for rule in rules["groups"][0]["rules"]:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert page == "docs/runbook.md"
        assert f'id="{anchor}"' in shown, rule["alert"]
        assert rule["alert"] in shown


def test_commands_to_copy_are_on_pages_whose_commands_are_run() -> None:
    with_commands = {
        str(path.relative_to(DOCS))
        for path in DOCS.rglob("*.md")
        if re.search(r"^ *```(sh|bash|shell)$", path.read_text(), re.MULTILINE)
    }
    assert with_commands == WALKED
