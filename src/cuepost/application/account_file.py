"""The file for moving an account: lines of JSON, with a checksum in the last one.

The first line describes the file, and each further line has rows of one table. Secrets are in it
as they are stored: sealed, or as digests.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from cuepost.domain.access import Account
from cuepost.domain.errors import MoveRefused
from cuepost.domain.instants import from_millis, to_millis
from cuepost.ports.moves import Chunk

FORMAT = "cuepost account"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Head:
    """`digest` is that of the release code; `master_keys` are the ids of the needed keys."""

    account: Account
    revision: str
    digest: bytes
    master_keys: frozenset[str]


@dataclass(slots=True)
class AccountFileWriter:
    """Passes each line to `write`; without `end` the file is not complete."""

    write: Callable[[bytes], object]
    rows: int = 0
    _checksum: Any = field(default_factory=hashlib.sha256)

    def head(self, head: Head) -> None:
        account = head.account
        self._line(
            {
                "format": FORMAT,
                "version": VERSION,
                "revision": head.revision,
                "account": {
                    "id": str(account.id),
                    "name": account.name,
                    "webhooksEnabled": account.webhooks_enabled,
                    "createdAt": to_millis(account.created_at),
                    "externalId": account.external_id,
                },
                "releaseDigest": head.digest.hex(),
                "masterKeys": sorted(head.master_keys),
            }
        )

    def chunk(self, chunk: Chunk) -> None:
        self.rows += len(chunk.rows)
        self._line({"table": chunk.table, "columns": chunk.columns, "rows": chunk.rows})

    def end(self) -> None:
        self._line({"end": {"rows": self.rows, "sha256": self._checksum.hexdigest()}})

    def _line(self, content: Mapping[str, Any]) -> None:
        line = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        self._checksum.update(line)
        self.write(line)


@dataclass(slots=True)
class AccountFileReader:
    rows: int = 0
    is_complete: bool = False
    _checksum: Any = field(default_factory=hashlib.sha256)

    def head(self, line: bytes) -> Head:
        content = self._content(line)
        if content.get("format") != FORMAT:
            raise MoveRefused("This is not a file of 'cuepost accounts export'.")
        if content.get("version") != VERSION:
            raise MoveRefused("Another version of cuepost has written this file; use that version.")
        try:
            account = content["account"]
            return Head(
                Account(
                    UUID(account["id"]),
                    account["name"],
                    account["webhooksEnabled"],
                    from_millis(account["createdAt"]),
                    external_id=account["externalId"],
                ),
                content["revision"],
                bytes.fromhex(content["releaseDigest"]),
                frozenset(content["masterKeys"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged() from error

    def chunk(self, line: bytes) -> Chunk | None:
        """The rows of a line; None for the last line, if its checksum is right."""
        before = self._checksum.hexdigest()
        content = self._content(line)
        try:
            if "end" in content:
                if content["end"] != {"rows": self.rows, "sha256": before}:
                    raise _damaged()
                self.is_complete = True
                return None
            chunk = Chunk(content["table"], tuple(content["columns"]), content["rows"])
            self.rows += len(chunk.rows)
        except (KeyError, TypeError) as error:
            raise _damaged() from error
        return chunk

    def _content(self, line: bytes) -> dict[str, Any]:
        if self.is_complete:
            raise _damaged()
        self._checksum.update(line)
        try:
            content = json.loads(line)
        except ValueError as error:
            raise _damaged() from error
        if not isinstance(content, dict):
            raise _damaged()
        return content


def _damaged() -> MoveRefused:
    return MoveRefused("The file is damaged or not complete; export the account again.")
