"""Host names: international ones, local ones, and the rules for every label."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuepost.domain.host_name import is_local_name, normalise_host_name
from cuepost.domain.url_fault import ReceiverUrlRefused, UrlFault

LABEL_63 = "a" * 63


def fault_of(host: str) -> UrlFault:
    with pytest.raises(ReceiverUrlRefused) as caught:
        normalise_host_name(host)
    return caught.value.code


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("Hooks.Example.COM", "hooks.example.com"),
        ("a.b", "a.b"),
        ("127.0.0.1.example.com", "127.0.0.1.example.com"),
        ("0x7f.example.com", "0x7f.example.com"),
        ("1.a1", "1.a1"),
        ("r3---sn-4g5e.example.com", "r3---sn-4g5e.example.com"),
        (f"{LABEL_63}.com", f"{LABEL_63}.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("bu\u0308cher.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("straße.de", "xn--strae-oqa.de"),
        ("ΒΌΛΟΣ.com", "xn--nxasmq6b.com"),
        ("βόλος.com", "xn--nxasmm1c.com"),
        ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
        ("〇.jp", "xn--w6j.jp"),
        ("مثال.إختبار", "xn--mgbh0fb.xn--kgbechtv"),
        ("उदाहरण.परीक्षा", "xn--p1b6ci4b4b3a.xn--11b5bs3a9aj6g"),
        ("a१.com", "xn--a-jzd.com"),
    ],
)
def test_a_name_is_stored_in_lower_case_and_punycode(host: str, expected: str) -> None:
    assert normalise_host_name(host) == expected
    assert normalise_host_name(expected) == expected


@pytest.mark.parametrize(
    "host",
    [
        "a..com",
        ".com",
        "-a.com",
        "a-.com",
        "a_b.com",
        "_dmarc.com",
        "a*b.com",
        "a,b.com",
        "a!b.com",
        f"a{LABEL_63}.com",
        "xn--.com",
        "xn---.com",
        "xn--a-.com",
        "xn--99999999.com",
        "xn---tda.com",
        "xn--ls8h.la",
        "xn--" + "a" * 60 + ".com",
        "-ü.com",
        "ü-.com",
        "ab--ü.com",
        "xn--ü.com",
        "ü_b.com",
        "\u0301a.com",
        "\u093ea.com",
        "💩.la",
        "a·b.com",
        "ü\u0640.com",
        "ü\u034f.com",
        "ü\u20dd.com",
        "ü\u1100.com",
        "Ꭰ.com",
        "ü" * 60 + ".com",
        "\u0378.com",
    ],
)
def test_a_label_that_breaks_the_rules_makes_the_name_invalid(host: str) -> None:
    assert fault_of(host) == UrlFault.HOST_INVALID


def test_an_international_label_may_have_63_characters_in_punycode() -> None:
    longest = "a" * 55 + "ü"
    assert len(normalise_host_name(f"{longest}.com")) == 63 + len(".com")
    assert fault_of(f"a{longest}.com") == UrlFault.HOST_INVALID


def test_punycode_that_hides_look_alike_characters_is_refused_as_a_disguise() -> None:
    hidden = "xn--" + "１２７".encode("punycode").decode("ascii")
    assert fault_of(f"{hidden}.com") == UrlFault.HOST_DISGUISED_ADDRESS


def test_a_name_may_have_253_characters() -> None:
    longest = ".".join([LABEL_63, LABEL_63, LABEL_63, "a" * 61])
    assert normalise_host_name(longest) == longest
    assert fault_of(longest + "a") == UrlFault.HOST_INVALID


@pytest.mark.parametrize(
    "suffix",
    [
        *["localhost", "local", "internal", "test", "invalid", "example", "onion", "alt", "arpa"],
        *["home.arpa", "lan", "home", "corp", "mail", "intranet", "private", "localdomain"],
        *["localdomain4", "localdomain6", "svc"],
    ],
)
def test_names_under_a_special_use_suffix_are_local(suffix: str) -> None:
    assert is_local_name(suffix)
    assert is_local_name(f"hooks.{suffix}")
    assert is_local_name(f"a.hooks.{suffix}")
    assert not is_local_name(f"{suffix}.com")
    assert not is_local_name(f"hooks.a{suffix.replace('.', '-')}")


def test_a_single_word_is_local_and_the_documentation_domains_are_not() -> None:
    assert is_local_name("receiver")
    assert is_local_name("com")
    assert not any(map(is_local_name, ["example.com", "hooks.example.org", "example.net"]))


@given(st.text(min_size=1, max_size=12), st.sampled_from(["com", "example.com", "xn--p1ai"]))
def test_any_accepted_name_is_plain_ascii_and_stays_as_it_is(label: str, rest: str) -> None:
    try:
        name = normalise_host_name(f"{label}.{rest}")
    except ReceiverUrlRefused:
        return
    assert normalise_host_name(name) == name
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")
