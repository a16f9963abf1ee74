"""The typed response of a result URL."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cuepost_receiver.results.problems import Problem, ResultFailed

LONGEST_NAME = 200
_UNFIT = re.compile(r"[^\w.()+,@ -]+")


@dataclass(frozen=True, slots=True)
class Link:
    """Anyone with `url` can download the file until `expires_at`, so it is not in the repr."""

    kind: str
    name: str
    url: str = field(repr=False)
    content_type: str
    size_bytes: int
    expires_at: datetime

    @property
    def file_name(self) -> str:
        """A safe file name, without path separators or a leading dot."""
        last = re.split(r"[/\\]", self.name)[-1]
        return _UNFIT.sub("_", last).lstrip(". ")[:LONGEST_NAME] or "result"


@dataclass(frozen=True, slots=True)
class Result:
    """The last completed export; `status` and `stage` are the current ones of the project.

    `exported_at` identifies the export; older services do not send it.
    """

    project_id: str
    status: str
    stage: str
    links: tuple[Link, ...]
    access_expires_at: datetime | None
    exported_at: datetime | None = None


def read_result(answer: Any) -> Result:
    try:
        return Result(
            project_id=_text(answer, "projectId"),
            status=_text(answer, "status"),
            stage=_text(answer, "stage"),
            links=tuple(map(_link, answer["links"])),
            access_expires_at=_optional_instant(answer["accessExpiresAt"]),
            exported_at=_optional_instant(answer.get("exportedAt")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ResultFailed(
            Problem.BAD_ANSWER, "The response of the service is not a valid result."
        ) from error


def _link(link: Mapping[str, Any]) -> Link:
    size = link["sizeBytes"]
    if not isinstance(size, int) or size < 0:
        raise ValueError(size)
    return Link(
        kind=_text(link, "kind"),
        name=_text(link, "name"),
        url=_text(link, "url"),
        content_type=_text(link, "contentType"),
        size_bytes=size,
        expires_at=datetime.fromisoformat(_text(link, "expiresAt")),
    )


def _text(holder: Mapping[str, Any], name: str) -> str:
    found = holder[name]
    if not isinstance(found, str):
        raise TypeError(name)
    return found


def _optional_instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
