"""Validates URLs: which may be fetched, and which may get the API key."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from cuepost_receiver.results.problems import Problem, ResultFailed

DEFAULT_PORTS = {"https": 443, "http": 80}
# Refuse characters that URL parsers interpret differently.
_PLAIN = re.compile(r"[!-\[\]-~]+")


@dataclass(frozen=True, slots=True)
class Place:
    scheme: str
    host: str
    port: int
    target: str

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port


def place_of(url: str, problem: Problem = Problem.LINK_REFUSED) -> Place:
    """Parse a URL; raises ResultFailed if it is not a plain http or https URL."""
    try:
        if not _PLAIN.fullmatch(url):
            raise ValueError
        parts = urlsplit(url)
        if not parts.hostname or "@" in parts.netloc:
            raise ValueError
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except (KeyError, ValueError):
        raise ResultFailed(problem, "This is not a plain http or https URL.") from None
    query = f"?{parts.query}" if parts.query else ""
    return Place(parts.scheme, parts.hostname, port, (parts.path or "/") + query)


def within(base_url: str, url: str) -> Place:
    """Parse a URL below the base URL; only such URLs may get the API key."""
    base = place_of(base_url.rstrip("/"), Problem.OUTSIDE_BASE_URL)
    place = place_of(url, Problem.OUTSIDE_BASE_URL)
    path = place.target.partition("?")[0]
    below = path.startswith(base.target.rstrip("/") + "/")
    steps = re.split(r"/|%2f|%5c", path.lower().replace("%2e", "."))
    if place.origin != base.origin or not below or {".", ".."} & set(steps):
        raise ResultFailed(
            Problem.OUTSIDE_BASE_URL,
            "The URL is not below the base URL of this client.",
        )
    return place
