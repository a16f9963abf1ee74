"""The settings about host products that open the pages for their users."""

from dataclasses import dataclass
from typing import Annotated

from cuepost.domain.origin import is_local, origin_of, parse_origins
from cuepost.settings.kinds import SettingType
from cuepost.settings.setting import Setting

ORIGINS = SettingType("comma-separated origins, such as `https://app.example.com`", parse_origins)


@dataclass(frozen=True, slots=True, kw_only=True)
class PortalSettings:
    portal_origins: Annotated[
        tuple[str, ...],
        Setting(
            ORIGINS,
            "",
            "Origins of a host product that portal links may lead back to and show a logo of. "
            "Empty: links have neither.",
        ),
    ]
    frame_ancestors: Annotated[
        tuple[str, ...],
        Setting(
            ORIGINS,
            "",
            "Origins whose pages may show the settings pages in a frame. Empty: none.",
        ),
    ]


def insecure_origin(base_url: str, settings: PortalSettings) -> tuple[str, str] | None:
    """A setting that needs TLS where there is none, and the reason."""
    own = origin_of(base_url) or ""
    if own.startswith("http:") and is_local(own):
        return None
    for name, origins in (
        ("portal_origins", settings.portal_origins),
        ("frame_ancestors", settings.frame_ancestors),
    ):
        if any(origin.startswith("http:") for origin in origins):
            return name, "http:// is only for a service that is itself on http and loopback."
    if settings.frame_ancestors and own.startswith("http:"):
        return "frame_ancestors", "browsers keep no cookies in a frame without https."
    return None
