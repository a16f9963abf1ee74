"""Types of command line arguments; values are checked before the store is opened."""

import re
from datetime import datetime
from typing import Any
from uuid import UUID

import click

from cuepost.domain.access import key_id_in
from cuepost.domain.account_reference import (
    AccountReference,
    account_reference,
    checked_external_id,
)
from cuepost.domain.errors import Invalid, NotFound
from cuepost.domain.instants import at_millisecond

LONGEST_NAME = 100
LONGEST_KIND = 50
LONGEST_MEDIA_TYPE = 255
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+( *;[ -~]+)?", re.ASCII)


class Name(click.ParamType[str]):
    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value).strip()
        if not text or not text.isprintable() or len(text) > LONGEST_NAME:
            self.fail(f"expected 1 to {LONGEST_NAME} printable characters.", param, ctx)
        return text


class NamedAccount(click.ParamType[AccountReference]):
    """The id of an account, or `external:` and its external id."""

    name = "account"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> AccountReference:
        if isinstance(value, UUID):
            return value
        try:
            return account_reference(str(value))
        except NotFound:
            self.fail(f"{value!r} is not an id, nor 'external:' and an external id.", param, ctx)


class ExternalId(click.ParamType[str]):
    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return checked_external_id(str(value))
        except Invalid as invalid:
            self.fail(str(invalid), param, ctx)


class ArtifactKind(click.ParamType[str]):
    """The kind of an exported file, such as video or captions."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value).strip()
        if not text or not text.isprintable() or len(text) > LONGEST_KIND:
            self.fail(f"expected 1 to {LONGEST_KIND} printable characters.", param, ctx)
        return text


class MediaType(click.ParamType[str]):
    name = "type"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not _MEDIA_TYPE.fullmatch(text) or len(text) > LONGEST_MEDIA_TYPE:
            self.fail(f"{text!r} is not a media type such as video/mp4.", param, ctx)
        return text


class KeyId(click.ParamType[UUID]):
    """The id of a key, or the key itself, for example one that has leaked."""

    name = "key_id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> UUID:
        if isinstance(value, UUID):
            return value
        inside = key_id_in(value)
        if inside is not None:
            return inside
        try:
            return UUID(value)
        except ValueError:
            # The message does not repeat the value, which may be part of a key.
            self.fail("expected the id of a key; 'cuepost keys list' lists all keys.", param, ctx)


class Instant(click.ParamType[datetime]):
    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        try:
            instant = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time such as 2027-01-31T00:00:00Z.", param, ctx)
        if instant.tzinfo is None:
            self.fail(f"{value!r} has no time zone; append Z for UTC.", param, ctx)
        return at_millisecond(instant)
