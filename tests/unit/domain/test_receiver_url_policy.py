"""The receiver URL under the operator's policy, and what holds of any text under any policy."""

from ipaddress import ip_network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cuepost.domain.egress_policy import EgressPolicy, Verdict, judge_address
from cuepost.domain.receiver_url import ReceiverUrlRefused, UrlFault, parse_receiver_url
from cuepost.domain.url_fault import SENTENCES

PUBLIC = EgressPolicy()
LOCAL = EgressPolicy(
    networks=(ip_network("127.0.0.0/8"), ip_network("::1/128"), ip_network("::ffff:0:0/96")),
    ports=((80, 80), (443, 443), (8000, 8999)),
    allow_http=True,
)


def fault_of(text: str, policy: EgressPolicy = PUBLIC) -> UrlFault:
    with pytest.raises(ReceiverUrlRefused) as caught:
        parse_receiver_url(text, policy)
    return caught.value.code


def stored(text: str, policy: EgressPolicy = PUBLIC) -> str:
    return parse_receiver_url(text, policy).text


def test_a_refused_port_is_answered_with_the_open_ones() -> None:
    policy = EgressPolicy(ports=((443, 443), (8000, 8999)))
    with pytest.raises(ReceiverUrlRefused) as caught:
        parse_receiver_url("https://example.com:99/", policy)
    assert str(caught.value) == SENTENCES[UrlFault.PORT_NOT_ALLOWED] + " Open here: 443, 8000-8999."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://localhost:8000/x", "http://localhost:8000/x"),
        ("http://localhost:80/x", "http://localhost/x"),
        ("http://localhost:443/x", "http://localhost:443/x"),
        ("https://LOCALHOST:443", "https://localhost/"),
        ("https://localhost:80", "https://localhost:80/"),
        ("http://127.0.0.1:8999", "http://127.0.0.1:8999/"),
        ("http://[::1]:8000", "http://[::1]:8000/"),
        ("http://receiver:8000/", "http://receiver:8000/"),
        ("http://receiver.internal/", "http://receiver.internal/"),
    ],
)
def test_an_operator_who_opened_networks_ports_and_http_reaches_local_receivers(
    text: str, expected: str
) -> None:
    assert stored(text, LOCAL) == expected
    assert stored(expected, LOCAL) == expected


def test_an_opened_network_does_not_open_other_addresses_http_or_ports() -> None:
    policy = EgressPolicy(networks=(ip_network("127.0.0.0/8"),))
    assert fault_of("https://10.0.0.1/", policy) == UrlFault.ADDRESS_NOT_PUBLIC
    assert fault_of("http://127.0.0.1/", policy) == UrlFault.SCHEME_NOT_HTTPS
    assert fault_of("https://127.0.0.1:8000/", policy) == UrlFault.PORT_NOT_ALLOWED


def test_plain_http_needs_its_port_80_opened_as_well() -> None:
    assert fault_of("http://example.com/", EgressPolicy(allow_http=True)) == (
        UrlFault.PORT_NOT_ALLOWED
    )


URL_PIECES = st.sampled_from(
    [
        *[
            "https://",
            "http://",
            "HTTPS:",
            "//",
            "/",
            "?",
            "#",
            "@",
            ":",
            "::",
            ".",
            "..",
            "%",
            "%25",
        ],
        *["[", "]", "[::1]", "[2600::1]", "[::ffff:8.8.8.8]", "8.8.8.8", "127.0.0.1", "0x7f", "1"],
        *[
            ":443",
            ":8000",
            ":0",
            "example.com",
            "EXAMPLE",
            "localhost",
            ".local",
            "xn--",
            "xn--bcher",
        ],
        *[
            "-kva",
            "-",
            "_",
            "ü",
            "ß",
            "Σ",
            "İ",
            "①",
            "。",
            "\u0301",
            "\u200d",
            "\ud800",
            "\\",
            "\x00",
        ],
        *[" ", "\n", "a", "a" * 63, "字" * 40, "😀", "\u212a"],
    ]
)
HOSTS = st.lists(URL_PIECES | st.text(max_size=4), min_size=1, max_size=4).map("".join)
URLS = (
    st.text()
    | st.lists(URL_PIECES | st.characters(), max_size=8).map("".join)
    | st.tuples(HOSTS, st.text(max_size=8)).map(lambda parts: "https://" + "/".join(parts))
    | st.ip_addresses(v=4).map(lambda address: f"https://{address}/")
    | st.ip_addresses(v=6).map(lambda address: f"https://[{address}]/")
    | st.from_regex(r"https://([a-z0-9üßσж-]{1,6}\.)?xn--[a-z0-9-]{1,8}\.com/.*", fullmatch=True)
)


@given(URLS, st.sampled_from([PUBLIC, LOCAL]))
@example("https://[::ffff:127.0.0.1]:8000/", LOCAL)
@example("https://xn--a.com", PUBLIC)
def test_whatever_the_text_it_is_refused_with_a_code_or_stored_in_a_form_that_stays(
    text: str, policy: EgressPolicy
) -> None:
    try:
        url = parse_receiver_url(text, policy)
    except ReceiverUrlRefused:
        return
    assert parse_receiver_url(url.text, policy) == url
    assert all("!" <= character <= "~" for character in url.text)
    assert url.text.startswith(f"{url.scheme}://")
    assert url.text.endswith(url.target)
    assert url.target.startswith("/")
    assert url.host == url.host.lower()
    assert url.scheme == "https" or policy.allow_http
    assert policy.allows_port(url.port)
    assert url.address is None or judge_address(url.address, policy) is Verdict.ALLOWED
