"""The answer of the result address, typed."""

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
    """Whoever has `url` can fetch the file until `expires_at`, so it is not shown."""

    kind: str
    name: str
    url: str = field(repr=False)
    content_type: str
    size_bytes: int
    expires_at: datetime

    @property
    def file_name(self) -> str:
        """The name without anything that could lead out of a folder or hide in it."""
        last = re.split(r"[/\\]", self.name)[-1]
        return _UNFIT.sub("_", last).lstrip(". ")[:LONGEST_NAME] or "result"


@dataclass(frozen=True, slots=True)
class Result:
    """The last completed export; `status` and `stage` are those of the project now.

    `exported_at` tells one export from another; an older service does not say it.
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
            Problem.BAD_ANSWER, "The service's answer does not have the form of a result."
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
