"""Downloads one file to a `.part` file, resumes if interrupted, and renames it at the end."""

import http.client
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from cuepost_receiver.results.links import Link
from cuepost_receiver.results.problems import Problem, ResultFailed
from cuepost_receiver.results.progress import Progress
from cuepost_receiver.results.transfer import Deadline, Getter, read

PIECE_BYTES = 1 << 18
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
EXPIRED = {401, 403, 404, 410}


class LinkExpired(Exception):
    """The link has expired; a new one is needed."""


@dataclass(frozen=True, slots=True)
class Download:
    """`run` may be called again after a failure; it resumes the download."""

    target: Path
    getter: Getter
    most_bytes: int
    progress: Progress

    @property
    def part(self) -> Path:
        return self.target.with_name(self.target.name + ".part")

    @property
    def mark(self) -> Path:
        """The file with the validator of the version that the part belongs to."""
        return self.target.with_name(self.target.name + ".part.json")

    def run(self, link: Link, deadline: Deadline) -> Path:
        self._require_fitting(link.size_bytes)
        offset, validator = self._left_over(link)
        headers = {"Range": f"bytes={offset}-", "If-Range": validator} if offset else {}
        with self.getter.follow(link.url, headers, deadline) as response:
            self._receive(response, offset, link, deadline)
        if self.part.stat().st_size != link.size_bytes:
            raise ResultFailed(
                Problem.UNAVAILABLE, "The connection ended before the file was complete."
            )
        os.replace(self.part, self.target)
        self.mark.unlink(missing_ok=True)
        return self.target

    def _receive(
        self, response: http.client.HTTPResponse, offset: int, link: Link, deadline: Deadline
    ) -> None:
        start = self._start(response, offset, link)
        self._keep_mark(response, link)
        with self.part.open("r+b" if start else "wb") as file:
            file.seek(start)
            file.truncate()
            try:
                self._copy(response, file, link, deadline)
            finally:
                file.flush()
                os.fsync(file.fileno())

    def _start(self, response: http.client.HTTPResponse, offset: int, link: Link) -> int:
        """The position in the file at which the response starts."""
        if response.status in EXPIRED:
            raise LinkExpired
        if response.status == 206 and offset:
            found = _RANGE.fullmatch(response.headers["content-range"] or "")
            if found and (int(found[1]), int(found[3])) == (offset, link.size_bytes):
                return offset
            raise self._start_over("The server sent a different range than requested.")
        if response.status == 416:
            raise self._start_over("The server rejected the range.")
        if response.status != 200:
            problem = Problem.UNAVAILABLE if response.status >= 500 else Problem.LINK_REFUSED
            raise ResultFailed(problem, f"The server of the file responded with {response.status}.")
        return 0

    def _copy(
        self, response: http.client.HTTPResponse, file: BinaryIO, link: Link, deadline: Deadline
    ) -> None:
        done = file.tell()
        while piece := read(response, PIECE_BYTES, deadline):
            done += len(piece)
            self._require_fitting(done)
            if done > link.size_bytes:
                raise ResultFailed(Problem.WRONG_SIZE, "The file is larger than its link says.")
            file.write(piece)
            self.progress(self.target.name, done, link.size_bytes)

    def _left_over(self, link: Link) -> tuple[int, str]:
        """The size of the existing part and its validator, if they belong to this file."""
        try:
            known = json.loads(self.mark.read_text())
            offset = self.part.stat().st_size
            validator, expected = known["validator"], known["size"]
        except (OSError, ValueError, TypeError, KeyError):
            return 0, ""
        if expected != link.size_bytes or not 0 < offset < link.size_bytes:
            return 0, ""
        return (offset, validator) if isinstance(validator, str) else (0, "")

    def _keep_mark(self, response: http.client.HTTPResponse, link: Link) -> None:
        etag = response.headers["etag"] or ""
        # A weak tag does not guarantee identical bytes.
        validator = etag if etag.startswith('"') else response.headers["last-modified"]
        if validator:
            self.mark.write_text(json.dumps({"validator": validator, "size": link.size_bytes}))
        else:
            self.mark.unlink(missing_ok=True)

    def _start_over(self, why: str) -> ResultFailed:
        self.mark.unlink(missing_ok=True)
        return ResultFailed(Problem.UNAVAILABLE, why)

    def _require_fitting(self, count: int) -> None:
        if count > self.most_bytes:
            raise ResultFailed(
                Problem.TOO_LARGE, f"The file is larger than the limit of {self.most_bytes} bytes."
            )
