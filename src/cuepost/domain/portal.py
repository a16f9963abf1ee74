"""Portal links: a host product signs one of its users in to the pages of an account."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from cuepost.domain.colour import COLOUR_FAULT, is_colour
from cuepost.domain.errors import FieldError, Forbidden, Invalid
from cuepost.domain.origin import origin_of

SHORTEST_LINK_SECONDS = 10
LONGEST_LINK_SECONDS = 3_600
DEFAULT_LINK_SECONDS = 600
PORTAL_SESSION_LIFE = timedelta(hours=12)
SETTING = "CUEPOST_PORTAL_ORIGINS"


class ManagedByHost(Forbidden):
    """You came from another product, which manages how you sign in."""

    code = "managed_by_host"


class ColourScheme(StrEnum):
    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True)
class PortalTheme:
    accent: str | None = None
    logo_url: str | None = None
    scheme: ColourScheme = ColourScheme.SYSTEM


@dataclass(frozen=True, slots=True)
class PortalLink:
    """It is used once. The session that it opens has the same id, and is found by it.

    The link is kept until `ends_at`, which is when the session ends once the link was used.
    """

    account_id: UUID
    id: UUID
    user_id: UUID
    digest: bytes
    created_at: datetime
    expires_at: datetime
    ends_at: datetime
    used_at: datetime | None = None
    return_url: str | None = None
    theme: PortalTheme = field(default_factory=PortalTheme)

    def is_live(self, now: datetime) -> bool:
        return self.used_at is None and self.expires_at > now

    @property
    def host(self) -> str | None:
        """What the link back is called."""
        origin = origin_of(self.return_url) if self.return_url else None
        return origin.partition("://")[2] if origin else None

    def __repr__(self) -> str:
        return f"PortalLink({self.id})"


@dataclass(frozen=True, slots=True)
class PortalPolicy:
    """The origins that an operator allows in the links of a host product."""

    origins: tuple[str, ...] = ()

    def check(self, return_url: str | None, theme: PortalTheme) -> None:
        if return_url is not None:
            self._require_allowed("returnUrl", return_url)
        if theme.logo_url is not None:
            self._require_allowed("theme.logoUrl", theme.logo_url)
        if theme.accent is not None and not is_colour(theme.accent):
            raise Invalid(FieldError("theme.accent", *COLOUR_FAULT))

    def _require_allowed(self, name: str, url: str) -> None:
        origin = origin_of(url)
        if origin is None:
            raise Invalid(
                FieldError(name, "invalid_url", "Give an absolute https URL of plain ASCII.")
            )
        if origin not in self.origins:
            allowed = ", ".join(self.origins) or "none"
            message = f"{origin} is not among the allowed origins ({allowed}); the operator adds it"
            raise Invalid(FieldError(name, "origin_not_allowed", f"{message} to {SETTING}."))
