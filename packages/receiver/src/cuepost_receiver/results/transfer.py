"""One GET over HTTP/1.1: no proxies, no cookies, no redirects of its own, and a time limit."""

import http.client
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urljoin

from cuepost_receiver.results.places import Place, place_of
from cuepost_receiver.results.problems import Problem, ResultFailed

MOST_REDIRECTS = 5
PLAIN = {"Accept-Encoding": "identity"}
REDIRECTS = {301, 302, 303, 307, 308}


class Deadline:
    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self, most: float) -> float:
        """How long the next step may take; raises when nothing is left."""
        remaining = self._end - time.monotonic()
        if remaining <= 0:
            raise ResultFailed(Problem.TOO_SLOW, "It was not done within the time given.")
        return min(remaining, most)


@dataclass(frozen=True, slots=True)
class Getter:
    """`timeout` is for one silence of the other side, the deadline for everything."""

    timeout: float
    context: ssl.SSLContext

    @contextmanager
    def get(
        self, place: Place, headers: Mapping[str, str], deadline: Deadline
    ) -> Iterator[http.client.HTTPResponse]:
        connection = self._connection(place, deadline.left(self.timeout))
        try:
            with _network(deadline):
                connection.request("GET", place.target, headers={**PLAIN, **headers})
                response = connection.getresponse()
            yield response
        finally:
            connection.close()

    @contextmanager
    def follow(
        self, url: str, headers: Mapping[str, str], deadline: Deadline
    ) -> Iterator[http.client.HTTPResponse]:
        """Goes where redirects lead, never from https to http; no key ever comes along."""
        for _ in range(MOST_REDIRECTS + 1):
            place = place_of(url)
            with self.get(place, headers, deadline) as response:
                if response.status not in REDIRECTS:
                    yield response
                    return
                url = next_url(url, response.headers["location"] or "")
        raise ResultFailed(Problem.LINK_REFUSED, "There were too many redirects.")

    def _connection(self, place: Place, timeout: float) -> http.client.HTTPConnection:
        if place.scheme == "https":
            return http.client.HTTPSConnection(
                place.host, place.port, timeout=timeout, context=self.context
            )
        return http.client.HTTPConnection(place.host, place.port, timeout=timeout)


def read(response: http.client.HTTPResponse, most: int, deadline: Deadline) -> bytes:
    """What has come, at least one byte of it; nothing at the end."""
    with _network(deadline):
        return response.read1(most)


def read_all(response: http.client.HTTPResponse, most: int, deadline: Deadline) -> bytes:
    found = b""
    while len(found) < most and (piece := read(response, most - len(found), deadline)):
        found += piece
    return found


@contextmanager
def _network(deadline: Deadline) -> Iterator[None]:
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        deadline.left(1)
        words = str(error) or type(error).__name__
        raise ResultFailed(Problem.UNAVAILABLE, f"The connection failed: {words}.") from error
    deadline.left(1)


def next_url(url: str, location: str) -> str:
    try:
        following = urljoin(url, location)
    except ValueError:
        following = ""
    if url.startswith("https:") and not following.startswith("https:"):
        raise ResultFailed(Problem.LINK_REFUSED, "A redirect leads out of TLS.")
    return following
