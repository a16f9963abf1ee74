"""Portal links, as a host product creates them."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from cuepost.application.account_members import MemberReference
from cuepost.application.portal import NewPortalLink, WantedLink
from cuepost.domain.access import Role
from cuepost.domain.account_reference import MEMBER_REFERENCE, member_reference
from cuepost.domain.colour import COLOUR
from cuepost.domain.instants import to_text
from cuepost.domain.portal import (
    DEFAULT_LINK_SECONDS,
    LONGEST_LINK_SECONDS,
    SHORTEST_LINK_SECONDS,
    ColourScheme,
    PortalTheme,
)
from cuepost.interfaces.wire_models.shapes import LINE, Moment, Request, ResponseModel, given

MemberName = Annotated[
    str,
    Meta(
        max_length=300,
        pattern=MEMBER_REFERENCE,
        description="The member's id, or `external:` and its external id.",
        examples=["external:user_7"],
    ),
]
AllowedUrl = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2_000,
        pattern=LINE,
        description="An https URL, of an origin in `CUEPOST_PORTAL_ORIGINS`.",
        examples=["https://app.example.com/settings"],
    ),
]


Lifetime = Annotated[
    int,
    Meta(
        ge=SHORTEST_LINK_SECONDS,
        le=LONGEST_LINK_SECONDS,
        description=f"How long the link can be opened; without it {DEFAULT_LINK_SECONDS}.",
    ),
]
_MODE = ColourScheme.SYSTEM


class LinkTheme(Request, frozen=True):
    """`accent` is the colour of buttons and links; text on it and its shade are made readable."""

    accent: (
        Annotated[str, Meta(pattern=COLOUR, description="As #rrggbb.", examples=["#0b6e4f"])]
        | UnsetType
        | None
    ) = UNSET
    logo_url: AllowedUrl | UnsetType | None = UNSET
    mode: ColourScheme | UnsetType = UNSET

    def theme(self) -> PortalTheme:
        return PortalTheme(given(self.accent), given(self.logo_url), given(self.mode) or _MODE)


class CreatePortalLink(Request, frozen=True):
    """A member with an external id that does not exist yet is created; `role` is needed then.

    A member that exists gets this `role`, if one is given.
    """

    member: MemberName
    role: Role | UnsetType | None = UNSET
    lifetime_seconds: Lifetime | UnsetType = UNSET
    return_url: AllowedUrl | UnsetType | None = UNSET
    theme: LinkTheme | UnsetType | None = UNSET

    def wanted(self) -> WantedLink:
        theme = given(self.theme)
        return WantedLink(
            member=member_reference(self.member),
            role=given(self.role),
            life=timedelta(seconds=given(self.lifetime_seconds) or DEFAULT_LINK_SECONDS),
            return_url=given(self.return_url),
            theme=PortalTheme() if theme is None else theme.theme(),
        )


class CreatedPortalLink(ResponseModel, frozen=True):
    """`url` is shown only here; it works once, until `expiresAt`."""

    id: UUID
    member_id: UUID
    role: Role
    url: str
    created_at: Moment
    expires_at: Moment

    @classmethod
    def of(cls, made: NewPortalLink) -> "CreatedPortalLink":
        link = made.link
        return cls(
            id=link.id,
            member_id=link.user_id,
            role=made.user.role,
            url=made.url,
            created_at=to_text(link.created_at),
            expires_at=to_text(link.expires_at),
        )

    def __repr__(self) -> str:
        return f"CreatedPortalLink({self.id})"


class EndPortalSessions(Request, frozen=True):
    """Without `member`, of all members of the account."""

    member: MemberName | UnsetType = UNSET

    def reference(self) -> MemberReference | None:
        text = given(self.member)
        return None if text is None else member_reference(text)
