"""The settings about signing in: OpenID Connect, and passwords."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import urlsplit

from cuepost.domain.access import Role
from cuepost.settings.kinds import BASE_URL, SettingType, choice, optional
from cuepost.settings.mail import MailSettings
from cuepost.settings.setting import Setting

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def _issuer(text: str) -> str:
    """As the provider spells it, so with a final slash if it has one."""
    parts = urlsplit(BASE_URL.read(text.removesuffix("/")))
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise ValueError("expected https; http is only for a provider on this machine.")
    return text


def _visible(text: str) -> str:
    if not re.fullmatch(r"[!-~]{1,1000}", text):
        raise ValueError
    return text


def _secret(text: str) -> str:
    if not re.fullmatch(r"[!-~]([ -~]{0,998}[!-~])?", text):
        raise ValueError
    return text


def _name(text: str) -> str:
    if not text.isprintable() or len(text) > 50:
        raise ValueError
    return text.strip()


def _scopes(text: str) -> tuple[str, ...]:
    scopes = tuple(text.split())
    if not re.fullmatch(r"[!#-\[\]-~ ]+", text) or "openid" not in scopes:
        raise ValueError
    return scopes


def _roles(text: str) -> Mapping[str, Role]:
    pairs = [item.rpartition("=") for item in text.split(",")]
    found = {value.strip(): role.strip() for value, _, role in pairs}
    if len(found) != len(pairs) or "" in found or not set(found.values()) <= set(Role):
        raise ValueError
    return {value: Role(role) for value, role in found.items()}


ISSUER = SettingType("an https URL without a query", _issuer)
VISIBLE = SettingType("visible ASCII characters", _visible)
SECRET = SettingType("ASCII characters, without spaces around them", _secret, secret=True)
NAME = SettingType("up to 50 characters", _name)
SCOPES = SettingType("scopes separated by spaces, `openid` among them", _scopes)
ROLES = SettingType("comma-separated pairs such as `admins=owner,staff=viewer`", _roles)
DEFAULT_ROLE = choice({"none": None, "viewer": Role.VIEWER, "developer": Role.DEVELOPER})
ON_OFF = choice({"on": True, "off": False})


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInSettings(MailSettings):
    oidc_issuer: Annotated[
        str | None,
        Setting(
            optional(ISSUER),
            "",
            "The OpenID provider with which members sign in, as it spells itself in its discovery "
            "document; needs `cuepost[oidc]`, `OIDC_CLIENT_ID` and `OIDC_CLIENT_SECRET`. "
            "Empty: none.",
        ),
    ]
    oidc_client_id: Annotated[
        str | None, Setting(optional(VISIBLE), "", "The id of this service at the provider.")
    ]
    oidc_client_secret: Annotated[
        str | None, Setting(optional(SECRET), "", "The secret of this service at the provider.")
    ] = field(repr=False)
    oidc_name: Annotated[
        str,
        Setting(
            NAME, "", "What the sign-in page calls the provider. Empty: the host of the issuer."
        ),
    ]
    oidc_scopes: Annotated[
        tuple[str, ...],
        Setting(SCOPES, "openid email", "The scopes that are requested from the provider."),
    ]
    oidc_account_claim: Annotated[
        str,
        Setting(
            VISIBLE,
            "cuepost_account",
            "The claim of the id token that names the account: its id, `external:` and its "
            "external id, or the external id alone. A dot leads into an object.",
        ),
    ]
    oidc_role_claim: Annotated[
        str | None,
        Setting(
            optional(VISIBLE),
            "cuepost_role",
            "The claim of the id token with the role, or with a list of groups; it is applied at "
            "each sign-in. Empty: new members have `OIDC_DEFAULT_ROLE`, and owners change it.",
        ),
    ]
    oidc_roles: Annotated[
        Mapping[str, Role],
        Setting(
            ROLES,
            "owner=owner,developer=developer,viewer=viewer",
            "Which value of the claim gives which role. Of several, the greatest role counts.",
        ),
    ]
    oidc_default_role: Annotated[
        Role | None,
        Setting(
            DEFAULT_ROLE,
            "none",
            "The role of a person to whom the claim gives none; with `none` they are refused.",
        ),
    ]
    password_sign_in: Annotated[
        bool,
        Setting(
            ON_OFF,
            "on",
            "Whether members can sign in with e-mail and password. One-time links of "
            "`cuepost accounts sign-in-link` always work.",
        ),
    ]


def sign_in_contradiction(settings: SignInSettings) -> tuple[str, str] | None:
    """The setting that does not go with the others, and why."""
    needed = ("oidc_issuer", "oidc_client_id", "oidc_client_secret")
    missing = [name for name in needed if getattr(settings, name) is None]
    if 0 < len(missing) < len(needed):
        given = next(name for name in needed if name not in missing)
        return missing[0], f"it is needed, because CUEPOST_{given.upper()} is set."
    if not missing and settings.oidc_role_claim is None and settings.oidc_default_role is None:
        return "oidc_default_role", "choose a role, because CUEPOST_OIDC_ROLE_CLAIM is empty."
    return None
