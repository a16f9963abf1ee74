"""The receiver URL: what is stored of a good one, and the code of every trick."""

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest

from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.receiver_url import (
    ReceiverUrl,
    ReceiverUrlRefused,
    UrlFault,
    parse_receiver_url,
)
from cuepost.domain.url_fault import SENTENCES

PUBLIC = EgressPolicy()
OPENED = EgressPolicy(networks=(ip_network("0.0.0.0/0"), ip_network("::/0")))


def fault_of(text: str, policy: EgressPolicy = PUBLIC) -> UrlFault:
    with pytest.raises(ReceiverUrlRefused) as caught:
        parse_receiver_url(text, policy)
    return caught.value.code


def stored(text: str, policy: EgressPolicy = PUBLIC) -> str:
    return parse_receiver_url(text, policy).text


def test_a_plain_url_is_taken_apart_and_kept() -> None:
    assert parse_receiver_url("https://hooks.example.com/cue?a=1", PUBLIC) == ReceiverUrl(
        text="https://hooks.example.com/cue?a=1",
        scheme="https",
        host="hooks.example.com",
        port=443,
        target="/cue?a=1",
        address=None,
    )


def test_a_literal_ipv4_receiver_carries_its_address() -> None:
    assert parse_receiver_url("https://8.8.4.4", PUBLIC) == ReceiverUrl(
        text="https://8.8.4.4/",
        scheme="https",
        host="8.8.4.4",
        port=443,
        target="/",
        address=IPv4Address("8.8.4.4"),
    )


def test_a_literal_ipv6_receiver_is_stored_in_its_short_form() -> None:
    url = parse_receiver_url("https://[2A00:0:0:0::1]:8443/x", EgressPolicy(ports=((8443, 8443),)))
    assert url == ReceiverUrl(
        text="https://[2a00::1]:8443/x",
        scheme="https",
        host="2a00::1",
        port=8443,
        target="/x",
        address=IPv6Address("2a00::1"),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HTTPS://Hooks.Example.COM/Path", "https://hooks.example.com/Path"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com?", "https://example.com/?"),
        ("https://example.com?b=2&a=%7e", "https://example.com/?b=2&a=%7e"),
        ("https://example.com/a/../b//c", "https://example.com/a/../b//c"),
        ("https://example.com/a@b:c", "https://example.com/a@b:c"),
        ("https://example.com/!$&'()*+,;=~", "https://example.com/!$&'()*+,;=~"),
        ("https://example.com/?u=https://x@y:1/", "https://example.com/?u=https://x@y:1/"),
        ('https://example.com/{a}|"<^>`[]', 'https://example.com/{a}|"<^>`[]'),
        ("https://example.com/%zz%0d%0a", "https://example.com/%zz%0d%0a"),
        ("https://example.com/ü?q=字", "https://example.com/%C3%BC?q=%E5%AD%97"),
        ("https://BÜCHER.example.com/", "https://xn--bcher-kva.example.com/"),
    ],
)
def test_scheme_host_and_port_are_normalised_and_the_rest_is_kept(text: str, expected: str) -> None:
    assert stored(text) == expected
    assert stored(expected) == expected


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", UrlFault.NOT_ABSOLUTE),
        ("hooks.example.com/cue", UrlFault.NOT_ABSOLUTE),
        ("//example.com/", UrlFault.NOT_ABSOLUTE),
        ("/cue", UrlFault.NOT_ABSOLUTE),
        ("https:/example.com/", UrlFault.NOT_ABSOLUTE),
        ("https:example.com", UrlFault.NOT_ABSOLUTE),
        ("://example.com", UrlFault.NOT_ABSOLUTE),
        ("1https://example.com", UrlFault.NOT_ABSOLUTE),
        ("ｈttps://example.com", UrlFault.NOT_ABSOLUTE),
        ("javascript:alert(1)", UrlFault.NOT_ABSOLUTE),
        ("http://example.com/", UrlFault.SCHEME_NOT_HTTPS),
        ("http://example.com:443/", UrlFault.SCHEME_NOT_HTTPS),
        ("ftp://example.com/", UrlFault.SCHEME_NOT_HTTPS),
        ("file:///etc/passwd", UrlFault.SCHEME_NOT_HTTPS),
        ("gopher://127.0.0.1/", UrlFault.SCHEME_NOT_HTTPS),
        ("https+unix://example.com/", UrlFault.SCHEME_NOT_HTTPS),
        ("https://user@example.com/", UrlFault.HAS_CREDENTIALS),
        ("https://user:pass@example.com/", UrlFault.HAS_CREDENTIALS),
        ("https://@example.com/", UrlFault.HAS_CREDENTIALS),
        ("https://example.com@127.0.0.1/", UrlFault.HAS_CREDENTIALS),
        ("https://example.com/#top", UrlFault.HAS_FRAGMENT),
        ("https://example.com/#", UrlFault.HAS_FRAGMENT),
        ("https://example.com#@127.0.0.1/", UrlFault.HAS_FRAGMENT),
        ("https://example.com:80/", UrlFault.PORT_NOT_ALLOWED),
        ("https://example.com:8443/", UrlFault.PORT_NOT_ALLOWED),
        ("https://example.com:1/", UrlFault.PORT_NOT_ALLOWED),
        ("https://example.com:65535/", UrlFault.PORT_NOT_ALLOWED),
        ("https://example.com:/", UrlFault.PORT_INVALID),
        ("https://example.com:0/", UrlFault.PORT_INVALID),
        ("https://example.com:0443/", UrlFault.PORT_INVALID),
        ("https://example.com:+443/", UrlFault.PORT_INVALID),
        ("https://example.com:65536/", UrlFault.PORT_INVALID),
        ("https://example.com:４４３/", UrlFault.PORT_INVALID),
        ("https://example.com:" + "4" * 1900, UrlFault.PORT_INVALID),
        ("https://[2600::1]:x/", UrlFault.PORT_INVALID),
        ("https://", UrlFault.HOST_MISSING),
        ("https:///cue", UrlFault.HOST_MISSING),
        ("https://?a", UrlFault.HOST_MISSING),
        ("https://:443/", UrlFault.HOST_MISSING),
        ("https://example.com\\@127.0.0.1/", UrlFault.HAS_BACKSLASH),
        ("https:\\\\example.com\\", UrlFault.HAS_BACKSLASH),
        ("https://example.com/a b", UrlFault.HAS_SPACES),
        (" https://example.com/", UrlFault.HAS_SPACES),
        ("https://example.com/ ", UrlFault.HAS_SPACES),
        ("https://example.com/a\u00a0b", UrlFault.HAS_SPACES),
        ("https://example.com/a\u2028b", UrlFault.HAS_SPACES),
        ("https://example.com/a\u2029b", UrlFault.HAS_SPACES),
        ("https://example.com/\t", UrlFault.HAS_CONTROL_CHARACTERS),
        ("ht\ntps://example.com/", UrlFault.HAS_CONTROL_CHARACTERS),
        ("https://example.com/\r\nHost: x", UrlFault.HAS_CONTROL_CHARACTERS),
        ("https://example.com/\n", UrlFault.HAS_CONTROL_CHARACTERS),
        ("https://example.com/\x00", UrlFault.HAS_CONTROL_CHARACTERS),
        ("\x01https://example.com/", UrlFault.HAS_CONTROL_CHARACTERS),
        ("https://example.com/\x7f", UrlFault.HAS_CONTROL_CHARACTERS),
        ("https://example.com/\x85", UrlFault.HAS_CONTROL_CHARACTERS),
        ("https://example.com/\u200b", UrlFault.HAS_CONTROL_CHARACTERS),
        ("https://exa\u00admple.com/", UrlFault.HAS_CONTROL_CHARACTERS),
        ("https://example.com/\ud800", UrlFault.HAS_LONE_SURROGATES),
        ("https://\udfff.com/", UrlFault.HAS_LONE_SURROGATES),
        ("https://[fe80::1%25eth0]/", UrlFault.HAS_ZONE_ID),
        ("https://[2600::1%1]/", UrlFault.HAS_ZONE_ID),
    ],
)
def test_a_malformed_url_is_refused_with_its_cause(text: str, fault: UrlFault) -> None:
    assert fault_of(text) == fault


@pytest.mark.parametrize(
    "host",
    [
        "127.1",
        "127.0.1",
        "0x7f.1",
        "0x7F.0.0.1",
        "0x7f000001",
        "0x",
        "2130706433",
        "0",
        "0177.0.0.1",
        "127.0.0.01",
        "08.8.8.8",
        "8.8.8.256",
        "8.8.8.8.8",
        "example.1",
        "example.0x1f",
        "1.2.3.0x4",
        "１２７.0.0.1",
        "127.0.0.①",
        "⑫⑦.⓪.⓪.①",
        "127．0．0．1",
        "127。0。0。1",
        "127｡0｡0｡1",
        "²¹³⁰",
        "١٢٧.٠.٠.١",
        "exa.१२",
        "ⓛocalhost",
        "example.ｃom",
        "\u212aelvin.com",
        "℀.com",
        "ﬁsh.com",
        "exampl\u2024com.com",
    ],
)
def test_a_disguised_address_is_refused_as_one(host: str) -> None:
    assert fault_of(f"https://{host}/") == UrlFault.HOST_DISGUISED_ADDRESS
    assert fault_of(f"https://{host}/", OPENED) == UrlFault.HOST_DISGUISED_ADDRESS


@pytest.mark.parametrize(
    ("host", "fault"),
    [
        ("127.0.0.1", UrlFault.ADDRESS_NOT_PUBLIC),
        ("169.254.169.254", UrlFault.ADDRESS_NOT_PUBLIC),
        ("10.0.0.1", UrlFault.ADDRESS_NOT_PUBLIC),
        ("[::1]", UrlFault.ADDRESS_NOT_PUBLIC),
        ("[::]", UrlFault.ADDRESS_NOT_PUBLIC),
        ("[::ffff:127.0.0.1]", UrlFault.ADDRESS_NOT_PUBLIC),
        ("[::ffff:7f00:1]", UrlFault.ADDRESS_NOT_PUBLIC),
        ("[::ffff:8.8.8.8]", UrlFault.ADDRESS_NOT_PUBLIC),
        ("[64:ff9b::8.8.8.8]", UrlFault.ADDRESS_NOT_PUBLIC),
        ("[2002:808:808::]", UrlFault.ADDRESS_NOT_PUBLIC),
        ("[fd00:ec2::254]", UrlFault.ADDRESS_NOT_PUBLIC),
        ("::1", UrlFault.HOST_INVALID),
        ("2600::1", UrlFault.HOST_INVALID),
        ("[2600::1", UrlFault.HOST_INVALID),
        ("2600::1]", UrlFault.HOST_INVALID),
        ("[[2600::1]]", UrlFault.HOST_INVALID),
        ("[2600::1]]", UrlFault.HOST_INVALID),
        ("[2600::1]x", UrlFault.HOST_INVALID),
        ("[2600::1]x:443", UrlFault.HOST_INVALID),
        ("[2600::1]:443:443", UrlFault.HOST_INVALID),
        ("[v1.x]", UrlFault.HOST_INVALID),
        ("[①]", UrlFault.HOST_INVALID),
        ("[example.com]", UrlFault.HOST_INVALID),
        ("[8.8.8.8]", UrlFault.HOST_INVALID),
        ("[]", UrlFault.HOST_INVALID),
        ("[", UrlFault.HOST_INVALID),
        ("]", UrlFault.HOST_INVALID),
        ("example.com:443:443", UrlFault.HOST_INVALID),
        ("%31%32%37.0.0.1", UrlFault.HOST_PERCENT_ENCODED),
        ("example%2ecom", UrlFault.HOST_PERCENT_ENCODED),
        ("127.0.0.1%00.example.com", UrlFault.HOST_PERCENT_ENCODED),
        ("127.0.0.1.", UrlFault.HOST_TRAILING_DOT),
        ("example.com.", UrlFault.HOST_TRAILING_DOT),
        ("localhost.", UrlFault.HOST_TRAILING_DOT),
    ],
)
def test_a_bad_host_is_refused_with_its_cause(host: str, fault: UrlFault) -> None:
    assert fault_of(f"https://{host}/") == fault


def test_the_host_is_judged_before_http_and_the_port() -> None:
    assert fault_of("http://localhost:3000/hook") == UrlFault.HOST_NOT_PUBLIC
    assert fault_of("http://127.0.0.1:3000/hook") == UrlFault.ADDRESS_NOT_PUBLIC


def test_the_owner_of_a_local_receiver_is_told_of_cuepost_listen() -> None:
    for fault in (UrlFault.HOST_NOT_PUBLIC, UrlFault.ADDRESS_NOT_PUBLIC):
        assert "cannot reach it from outside" in SENTENCES[fault]
        assert "`cuepost listen`, which forwards events" in SENTENCES[fault]


def test_every_cause_has_a_sentence_of_its_own_which_the_refusal_shows() -> None:
    assert set(SENTENCES) == set(UrlFault)
    assert len(set(SENTENCES.values())) == len(UrlFault)
    for fault, sentence in SENTENCES.items():
        assert fault.value.startswith("url_")
        assert sentence.endswith(".")
        assert str(ReceiverUrlRefused(fault)) == sentence


def test_a_url_may_have_2048_characters_as_written_and_as_stored() -> None:
    longest = "https://example.com/".ljust(2048, "a")
    assert stored(longest) == longest
    assert fault_of(longest + "a") == UrlFault.TOO_LONG
    assert fault_of(longest[:-1] + "ü") == UrlFault.TOO_LONG
    assert fault_of("\x00" * 2049) == UrlFault.TOO_LONG
    assert fault_of("https://example.com?".ljust(2048, "a")) == UrlFault.TOO_LONG
