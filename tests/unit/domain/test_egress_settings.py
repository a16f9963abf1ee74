"""The operator's ports and networks, read from the text of a setting."""

import re
from ipaddress import ip_network

import pytest

from cuepost.domain.egress_policy import parse_networks, parse_ports


def exactly(sentence: str) -> str:
    return f"^{re.escape(sentence)}$"


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("443", ((443, 443),)),
        ("443,8000-8999", ((443, 443), (8000, 8999))),
        (" 443 , 1-65535 ", ((443, 443), (1, 65535))),
        ("80-80", ((80, 80),)),
    ],
)
def test_ports_are_read_from_a_list_with_ranges(
    text: str, ports: tuple[tuple[int, int], ...]
) -> None:
    assert parse_ports(text) == ports


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("", ""),
        ("443,", ""),
        ("0", "0"),
        ("65536", "65536"),
        ("000443", "000443"),
        ("https", "https"),
        ("443-", "443-"),
        ("-443", "-443"),
        ("1-2-3", "1-2-3"),
        ("+443", "+443"),
        ("443,80 - 90", "80 - 90"),
        ("４４３", "４４３"),
    ],
)
def test_a_bad_port_is_named_in_one_sentence(text: str, item: str) -> None:
    sentence = (
        f"{item!r} is not a port or a range of ports; write numbers from 1 to 65535, "
        "for example 443,8000-8999."
    )
    with pytest.raises(ValueError, match=exactly(sentence)):
        parse_ports(text)


def test_a_backward_range_of_ports_is_named_in_one_sentence() -> None:
    sentence = "The port range '8999-8000' is reversed; write the lower port first."
    with pytest.raises(ValueError, match=exactly(sentence)):
        parse_ports("443,8999-8000")


@pytest.mark.parametrize(
    ("text", "networks"),
    [
        ("", []),
        ("  ", []),
        ("127.0.0.0/8,::1/128", ["127.0.0.0/8", "::1/128"]),
        (" 10.0.0.0/8 , fd00::/8 ", ["10.0.0.0/8", "fd00::/8"]),
        ("192.168.1.7", ["192.168.1.7/32"]),
    ],
)
def test_networks_are_read_from_a_list(text: str, networks: list[str]) -> None:
    assert parse_networks(text) == tuple(map(ip_network, networks))


@pytest.mark.parametrize(
    "item",
    [
        "",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/255.0.0.0",
        "10.0.0.0/８",
        "10.0/8",
        "fe80::%1/64",
        "fd00::/129",
        "localhost",
        "/8",
    ],
)
def test_a_bad_network_is_named_in_one_sentence(item: str) -> None:
    sentence = (
        f"{item!r} is not a network; write an address and a prefix length, "
        "for example 10.0.0.0/8 or fd00::/8."
    )
    with pytest.raises(ValueError, match=exactly(sentence)):
        parse_networks(f"127.0.0.0/8,{item}")


def test_a_network_with_bits_beyond_its_prefix_is_refused_with_what_was_meant() -> None:
    sentence = "'127.0.0.1/8' has bits set beyond its prefix; write 127.0.0.0/8 instead."
    with pytest.raises(ValueError, match=exactly(sentence)):
        parse_networks("127.0.0.1/8")
