"""How an operator names an account: by its id, or by the id that another product gave it."""

import re
from uuid import UUID

from cuepost.domain.errors import FieldError, Invalid, NotFound

EXTERNAL = "external:"
# Characters that stand in a path as they are, so that no proxy can change their meaning.
EXTERNAL_ID = r"^[A-Za-z0-9._~:@-]{1,200}\Z"
EXTERNAL_ID_FAULT = (
    "invalid_external_id",
    "Give 1 to 200 letters, digits and the characters . _ ~ : @ -",
)
_EXTERNAL_ID = re.compile(EXTERNAL_ID)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
REFERENCE = rf"^({_UUID.pattern}|{EXTERNAL}[A-Za-z0-9._~:@-]{{1,200}})$"

MEMBER_REFERENCE = REFERENCE.removesuffix("$") + r"\Z"
MEMBER_REFERENCE_FAULT = (
    "invalid_member",
    "Give the id of a member, or `external:` and its external id, such as external:user_7.",
)

AccountReference = UUID | str
"""The id of an account, or its external id as text."""


def account_reference(text: str) -> AccountReference:
    """An id, or `external:` and an external id; any other text names no account."""
    if _UUID.fullmatch(text):
        return UUID(text)
    external_id = text.removeprefix(EXTERNAL)
    if external_id == text or not _EXTERNAL_ID.match(external_id):
        raise NotFound("There is no such account.")
    return external_id


def member_reference(text: str) -> UUID | str:
    """Of text that matches `MEMBER_REFERENCE`."""
    return UUID(text) if _UUID.fullmatch(text) else text.removeprefix(EXTERNAL)


def account_references(text: str) -> list[AccountReference]:
    """What a claim may mean: a reference, or an external id by itself; an id comes first."""
    external_id = text.removeprefix(EXTERNAL)
    if _EXTERNAL_ID.match(external_id) is None:
        return []
    return [UUID(text), text] if _UUID.fullmatch(text) else [external_id]


def checked_external_id(text: str) -> str:
    if not _EXTERNAL_ID.match(text):
        raise Invalid(FieldError("externalId", *EXTERNAL_ID_FAULT))
    return text


def search_key(text: str) -> str:
    """What a name is found by: the same in capital and in small letters."""
    return text.casefold()
