"""Portal links: until when they live, and which addresses they may name."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from cuepost.domain.account_reference import member_reference
from cuepost.domain.errors import Invalid
from cuepost.domain.origin import is_local, origin_of, parse_origins
from cuepost.domain.portal import ColourScheme, PortalLink, PortalPolicy, PortalTheme

NOW = datetime(2026, 1, 2, tzinfo=UTC)
END = NOW + timedelta(minutes=10)
LINK = PortalLink(uuid4(), uuid4(), uuid4(), b"digest", NOW, END, END)
POLICY = PortalPolicy(("https://app.example.com", "http://127.0.0.1:9000"))


def test_a_link_lives_until_it_is_used_or_expires() -> None:
    assert LINK.is_live(END - timedelta(milliseconds=1))
    assert not LINK.is_live(END)
    assert not replace(LINK, used_at=NOW).is_live(NOW)


def test_a_link_does_not_show_its_digest() -> None:
    assert repr(LINK) == f"PortalLink({LINK.id})"


def test_the_link_back_is_called_by_its_host() -> None:
    assert LINK.host is None
    assert replace(LINK, return_url="https://app.example.com:8443/a").host == "app.example.com:8443"


@pytest.mark.parametrize(
    ("return_url", "theme"),
    [
        (None, PortalTheme()),
        ("https://app.example.com/settings?tab=1#top", PortalTheme("#0b6e4f")),
        ("HTTPS://APP.example.com:443", PortalTheme(scheme=ColourScheme.DARK)),
        ("http://127.0.0.1:9000/", PortalTheme(logo_url="https://app.example.com/logo.svg")),
    ],
)
def test_addresses_of_allowed_origins_are_accepted(
    return_url: str | None, theme: PortalTheme
) -> None:
    if return_url is not None and return_url.startswith("HTTPS"):
        return_url = return_url.replace("HTTPS", "https")
    POLICY.check(return_url, theme)


@pytest.mark.parametrize(
    ("return_url", "theme", "fault"),
    [
        ("https://evil.example.com/", PortalTheme(), ("returnUrl", "origin_not_allowed")),
        ("http://app.example.com/", PortalTheme(), ("returnUrl", "origin_not_allowed")),
        ("https://app.example.com.evil.org", PortalTheme(), ("returnUrl", "origin_not_allowed")),
        ("https://app.example.com@evil.org/", PortalTheme(), ("returnUrl", "invalid_url")),
        ("https://app.example.com\\@evil.org/", PortalTheme(), ("returnUrl", "invalid_url")),
        ("javascript:alert(1)", PortalTheme(), ("returnUrl", "invalid_url")),
        ("/settings", PortalTheme(), ("returnUrl", "invalid_url")),
        ("https://[/", PortalTheme(), ("returnUrl", "invalid_url")),
        ("https://app.example.com:0/", PortalTheme(), ("returnUrl", "invalid_url")),
        (
            None,
            PortalTheme(logo_url="https://a.example/x"),
            ("theme.logoUrl", "origin_not_allowed"),
        ),
        (None, PortalTheme(accent="green"), ("theme.accent", "invalid_colour")),
    ],
)
def test_other_addresses_are_refused_by_name(
    return_url: str | None, theme: PortalTheme, fault: tuple[str, str]
) -> None:
    with pytest.raises(Invalid) as refused:
        POLICY.check(return_url, theme)
    assert [(each.field, each.code) for each in refused.value.errors] == [fault]


def test_without_the_setting_no_address_is_accepted_and_the_refusal_names_it() -> None:
    with pytest.raises(Invalid, match=r"\(none\); the operator adds it to CUEPOST_PORTAL_ORIGINS"):
        PortalPolicy().check("https://app.example.com/", PortalTheme())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        (
            "https://App.example.com:443, https://b.example:8443",
            ("https://app.example.com", "https://b.example:8443"),
        ),
        ("http://localhost:9000,http://[::1]:9000", ("http://localhost:9000", "http://[::1]:9000")),
    ],
)
def test_origins_are_comma_separated(text: str, expected: tuple[str, ...]) -> None:
    assert parse_origins(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "https://a.example/",
        "https://a.example,",
        "a.example",
        "http://a.example",
        "https://*.example",
    ],
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"origin|https"):
        parse_origins(text)


def test_what_is_on_this_machine_is_local() -> None:
    assert is_local("http://127.0.0.9:1")
    assert is_local("http://localhost")
    assert not is_local("https://app.example.com")
    assert origin_of("https://app.example.com/a b") is None


def test_a_member_is_named_by_its_id_or_by_its_external_id() -> None:
    member_id = uuid4()
    assert member_reference(str(member_id)) == member_id
    assert member_reference("external:user_7") == "user_7"
