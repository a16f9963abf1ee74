"""The client is the rightmost address that is not a trusted proxy's; no one can forge another."""

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuepost.domain.client_address import MOST_FORWARDED, client_of, counted_address, is_trusted

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
PROXY, CLIENT, OTHER = "10.0.0.1", "198.51.100.7", "203.0.113.9"


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        (CLIENT, [], CLIENT),
        (CLIENT, [OTHER], CLIENT),
        (PROXY, [], PROXY),
        (PROXY, [CLIENT], CLIENT),
        (PROXY, [f"{OTHER}, {CLIENT}"], CLIENT),
        (PROXY, [OTHER, CLIENT], CLIENT),
        (PROXY, [f"{OTHER}, {CLIENT}, 10.2.3.4"], CLIENT),
        (PROXY, [f"{OTHER}, {CLIENT}", "10.2.3.4", "fd00::1"], CLIENT),
        (PROXY, ["10.9.9.9"], "10.9.9.9"),
        (PROXY, ["unknown"], PROXY),
        (PROXY, [f"{CLIENT}, unknown"], PROXY),
        (PROXY, [f"{CLIENT}, not an address, 10.2.3.4"], "10.2.3.4"),
        (PROXY, [""], PROXY),
        (PROXY, [f"{CLIENT}:4711"], CLIENT),
        (PROXY, ["[2001:db8::7]:4711"], "2001:db8::7"),
        (PROXY, ["[2001:db8::7]"], "2001:db8::7"),
        (PROXY, ["2001:DB8:0::7"], "2001:db8::7"),
        (PROXY, ["::ffff:198.51.100.7"], CLIENT),
        ("::ffff:10.0.0.1", [CLIENT], CLIENT),
        ("fe80::1%eth0", [CLIENT], "fe80::1"),
        ("a socket without an address", [CLIENT], "a socket without an address"),
    ],
)
def test_the_client_is_the_rightmost_address_that_is_not_trusted(
    peer: str, forwarded: list[str], expected: str
) -> None:
    assert client_of(peer, forwarded, PROXIES) == expected


def test_without_trusted_proxies_no_header_is_believed() -> None:
    assert client_of(PROXY, [CLIENT], ()) == PROXY


@given(st.lists(st.text()))
def test_whatever_a_client_sends_before_the_proxy_appends_changes_nothing(sent: list[str]) -> None:
    assert client_of(PROXY, [*sent, CLIENT], PROXIES) == CLIENT
    assert client_of(PROXY, [", ".join([*sent, CLIENT])], PROXIES) == CLIENT
    assert client_of(CLIENT, sent, PROXIES) == CLIENT


def test_a_chain_of_proxies_is_followed_for_a_bounded_length() -> None:
    chain = [CLIENT, *["10.1.1.1"] * MOST_FORWARDED]
    assert client_of(PROXY, chain, PROXIES) == "10.1.1.1"
    assert client_of(PROXY, chain[:-1], PROXIES) == CLIENT


def test_only_addresses_of_the_given_networks_are_trusted() -> None:
    assert is_trusted(PROXY, PROXIES)
    assert is_trusted("fd12::1", PROXIES)
    assert not is_trusted(CLIENT, PROXIES)
    assert not is_trusted("", PROXIES)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (CLIENT, CLIENT),
        ("::ffff:198.51.100.7", CLIENT),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::", "2001:db8:1:3::/64"),
        ("", ""),
    ],
)
def test_limits_count_an_ipv6_subscriber_once(address: str, expected: str) -> None:
    assert counted_address(address) == expected
