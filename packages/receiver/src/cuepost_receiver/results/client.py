"""Follows the `resultUrl` of an event; sends the API key only to the service."""

import json
import ssl
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuepost_receiver.results.download import Download, LinkExpired
from cuepost_receiver.results.links import Link, Result, read_result
from cuepost_receiver.results.places import within
from cuepost_receiver.results.problems import Problem, ResultFailed
from cuepost_receiver.results.progress import Progress, terminal_progress
from cuepost_receiver.results.transfer import REDIRECTS, Deadline, Getter, read_all

MOST_ANSWER_BYTES = 1 << 20
PROBLEMS = {
    401: Problem.UNAUTHORIZED,
    403: Problem.UNAUTHORIZED,
    404: Problem.NOT_FOUND,
    409: Problem.NOT_READY,
    410: Problem.GONE,
    429: Problem.UNAVAILABLE,
}
RETRY_SECONDS = (0.2, 1.0, 3.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True)
class ResultClient:
    """`base_url` is the URL of the service; `api_key` needs the scope `projects:read`.

    The key is only sent to URLs below `base_url`, never to redirects or media links.
    """

    base_url: str
    api_key: str = field(repr=False)
    timeout: float = 30.0
    context: ssl.SSLContext = field(default_factory=ssl.create_default_context, repr=False)
    retry_seconds: tuple[float, ...] = RETRY_SECONDS

    def fetch(self, result_url: str, *, deadline: float = 60.0) -> Result:
        """New links to the last completed export; raises ResultFailed."""
        return self._fetch(result_url, Deadline(deadline))

    def save(
        self,
        result_url: str,
        folder: str | Path,
        *,
        most_bytes: int = 20_000_000_000,
        deadline: float = 3_600.0,
        progress: Progress | None = None,
    ) -> list[Path]:
        """Download every file of the result to the folder; raises ResultFailed.

        Interrupted downloads resume, also in the next call, and expired links are fetched again,
        unless a later export has replaced the files. `most_bytes` limits each file, `deadline` is
        the limit in seconds for all files.
        """
        end = Deadline(deadline)
        target = Path(folder)
        shown = progress or terminal_progress()
        result = self._fetch(result_url, end)
        names = _distinct(result.links)
        try:
            target.mkdir(parents=True, exist_ok=True)
            return [
                self._save(
                    result_url,
                    result,
                    place,
                    Download(target / name, self._getter, most_bytes, shown),
                    end,
                )
                for place, name in enumerate(names)
            ]
        except OSError as error:
            raise ResultFailed(
                Problem.CANNOT_WRITE, f"The file cannot be written: {error.strerror or error}."
            ) from error

    def _save(
        self, result_url: str, result: Result, place: int, download: Download, deadline: Deadline
    ) -> Path:
        pauses, link = list(self.retry_seconds), result.links[place]
        while True:
            self._require_as_safe(link)
            try:
                return download.run(link, deadline)
            except LinkExpired:
                trouble = ResultFailed(Problem.LINK_REFUSED, "A new link was refused as well.")
            except ResultFailed as failure:
                if not failure.may_pass or failure.problem is Problem.TOO_SLOW:
                    raise
                trouble = failure
            if not pauses:
                raise trouble
            threading.Event().wait(deadline.left(pauses.pop(0)))
            link = self._again(result_url, result, place, deadline)

    def _require_as_safe(self, link: Link) -> None:
        if self.base_url.startswith("https:") and not link.url.startswith("https:"):
            raise ResultFailed(Problem.LINK_REFUSED, "The link does not use HTTPS.")

    def _again(self, result_url: str, old: Result, place: int, deadline: Deadline) -> Link:
        """A new link to the same file of the same export."""
        fresh = self._fetch(result_url, deadline)
        names = [link.name for link in fresh.links]
        if fresh.exported_at != old.exported_at or names != [link.name for link in old.links]:
            raise ResultFailed(Problem.GONE, "A later export has replaced the result.")
        return fresh.links[place]

    def _fetch(self, result_url: str, deadline: Deadline) -> Result:
        place = within(self.base_url, result_url)
        headers = {"Authorization": f"Bearer {self.api_key}", "Accept": "application/json"}
        with self._getter.get(place, headers, deadline) as response:
            body = read_all(response, MOST_ANSWER_BYTES, deadline)
            if response.status == 200:
                return read_result(_parsed(body))
            raise _refused(response.status, body)

    @property
    def _getter(self) -> Getter:
        return Getter(self.timeout, self.context)


def _refused(status: int, body: bytes) -> ResultFailed:
    if status in REDIRECTS:
        return ResultFailed(
            Problem.OUTSIDE_BASE_URL,
            "The service redirects; the API key is not sent to another address.",
        )
    fallback = Problem.UNAVAILABLE if status >= 500 else Problem.BAD_ANSWER
    answer = _parsed(body)
    detail = answer.get("detail") if isinstance(answer, dict) else None
    text = detail if isinstance(detail, str) else f"The service responded with {status}."
    return ResultFailed(PROBLEMS.get(status, fallback), text)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _distinct(links: tuple[Link, ...]) -> list[str]:
    """Unique file names, with a number appended to duplicates."""
    taken: list[str] = []
    for link in links:
        name, number = link.file_name, 2
        while name in taken:
            stem, dot, end = link.file_name.rpartition(".")
            name = f"{stem or end} ({number}){dot}{end if stem else ''}"
            number += 1
        taken.append(name)
    return taken
