"""Adds pages from outside of docs/ to the site, and makes links between all pages work.

A hook of MkDocs. Pages link to each other by their path in the repository, and so they do in the
site. A link to a file that is not a page of the site is replaced by the name of that file.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
# Their path in the site is the same as in the repository.
PAGES = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "deploy/README.md",
    "examples/README.md",
    "packages/receiver/README.md",
)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|mailto:|#)([^)#\s]*)(#[^)\s]*)?\)")
_CODE = re.compile(r"(^```.*?^```|^~~~.*?^~~~|`[^`\n]*`)", re.MULTILINE | re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    for page in PAGES:
        files.append(File.generated(config, page, abs_src_path=str(ROOT / page)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Does not change links in code."""
    parts = _CODE.split(markdown)
    texts = [part if odd else _linked(part, page, files) for odd, part in _numbered(parts)]
    return "".join(texts)


def _numbered(parts: list[str]) -> list[tuple[bool, str]]:
    return [(bool(number % 2), part) for number, part in enumerate(parts)]


def _linked(text: str, page: Any, files: Any) -> str:
    here = _in_repository(page.file.src_uri)

    def relinked(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        place = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        wanted = place.removeprefix("docs/")
        if not (ROOT / place).exists():
            return found[0]
        if files.get_file_from_path(wanted) is None:
            return words
        start = posixpath.dirname(page.file.src_uri) or "."
        return f"[{words}]({posixpath.relpath(wanted, start)}{anchor})"

    return _LINK.sub(relinked, text)


def _in_repository(src_uri: str) -> str:
    return src_uri if src_uri in PAGES else f"docs/{src_uri}"
