"""Members of an account and invitations, as REST shows them."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from cuepost.application.manage_members import MemberChange, NewInvitation
from cuepost.domain.access import Role
from cuepost.domain.account_reference import EXTERNAL_ID
from cuepost.domain.instants import to_text
from cuepost.domain.invitation import Invitation as StoredInvitation
from cuepost.domain.person import EMAIL, LONGEST_EMAIL, User
from cuepost.interfaces.wire_models.paging import PageQuery
from cuepost.interfaces.wire_models.shapes import Moment, Request, ResponseModel, given

# Published for clients; the domain checks the address.
_ADDRESS = {"pattern": rf"^{EMAIL}$"}
Email = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_EMAIL,
        description="Without it, the person who opens the link chooses an address.",
        examples=["ada@example.com"],
        extra_json_schema=_ADDRESS,
    ),
]


MemberEmail = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_EMAIL,
        description="Shown in the pages, and used for alerts; unique in the installation.",
        examples=["ada@example.com"],
        extra_json_schema=_ADDRESS,
    ),
]
MemberExternalId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern=EXTERNAL_ID,
        description="The host product's own reference; unique within the account.",
        examples=["user_7"],
    ),
]


class ChangeMember(Request, frozen=True):
    """`alertsByEmail`: whether the member gets alerts about endpoints by e-mail."""

    role: Role | UnsetType = UNSET
    alerts_by_email: bool | UnsetType = UNSET

    def change(self) -> MemberChange:
        return MemberChange(role=given(self.role), alerts_by_email=given(self.alerts_by_email))


class Invite(Request, frozen=True):
    role: Role
    email: Email | UnsetType | None = UNSET


class MemberQuery(PageQuery, frozen=True):
    external_id: MemberExternalId | UnsetType = UNSET


class AddMember(Request, frozen=True):
    """The member has no password; a portal link or a sign-in link signs the member in."""

    role: Role
    external_id: MemberExternalId | UnsetType | None = UNSET
    email: MemberEmail | UnsetType | None = UNSET


class UpdateMember(Request, frozen=True):
    """`externalId: null` removes it."""

    role: Role | UnsetType = UNSET
    external_id: MemberExternalId | UnsetType | None = UNSET
    alerts_by_email: bool | UnsetType = UNSET

    def change(self) -> MemberChange:
        return MemberChange(
            role=given(self.role),
            alerts_by_email=given(self.alerts_by_email),
            sets_external_id=self.external_id is not UNSET,
            external_id=given(self.external_id),
        )


class Member(ResponseModel, frozen=True):
    """`email` is null until the member has chosen one; `externalId` is a host product's.

    `alertsByEmail`: whether the member gets alerts about endpoints, if there is an address.
    """

    id: UUID
    external_id: str | None
    email: str | None
    role: Role
    created_at: Moment
    alerts_by_email: bool

    @classmethod
    def of(cls, user: User) -> "Member":
        return cls(
            user.id,
            user.external_id,
            user.email,
            user.role,
            to_text(user.created_at),
            user.wants_alerts,
        )


class MemberList(ResponseModel, frozen=True):
    data: list[Member]
    next_cursor: str | None


class Invitation(ResponseModel, frozen=True):
    """`emailQueued` is true while it waits to be sent by e-mail."""

    id: UUID
    email: str | None
    role: Role
    created_at: Moment
    expires_at: Moment
    email_queued: bool

    @classmethod
    def of(cls, invitation: StoredInvitation) -> "Invitation":
        return cls(
            invitation.id,
            invitation.email,
            invitation.role,
            to_text(invitation.created_at),
            to_text(invitation.expires_at),
            invitation.email_queued,
        )


class InvitationList(ResponseModel, frozen=True):
    data: list[Invitation]
    next_cursor: str | None


class CreatedInvitation(ResponseModel, frozen=True):
    """`url` is shown only here; it works once. `emailQueued` if it will also be sent by e-mail."""

    id: UUID
    email: str | None
    role: Role
    created_at: Moment
    expires_at: Moment
    email_queued: bool
    url: str

    @classmethod
    def made(cls, new: NewInvitation) -> "CreatedInvitation":
        shown = Invitation.of(new.invitation)
        return cls(
            shown.id,
            shown.email,
            shown.role,
            shown.created_at,
            shown.expires_at,
            shown.email_queued,
            new.url,
        )
