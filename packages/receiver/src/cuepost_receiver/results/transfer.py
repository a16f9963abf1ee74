"""HTTP GET with a deadline, without proxies, cookies or automatic redirects."""

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
        """The time for the next step, at most `most`; raises if the deadline has passed."""
        remaining = self._end - time.monotonic()
        if remaining <= 0:
            raise ResultFailed(Problem.TOO_SLOW, "The deadline has passed.")
        return min(remaining, most)


@dataclass(frozen=True, slots=True)
class Getter:
    """`timeout` limits each wait for the server, the deadline the whole transfer."""

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
        """Follow redirects, but never from https to http; no API key is sent."""
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
    """Read at least one byte; empty at the end."""
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
        raise ResultFailed(Problem.LINK_REFUSED, "A redirect leads from https to http.")
    return following
