"""The egress table, judged at every edge, and the operator's exceptions to it."""

import json
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cuepost.domain.egress_policy import (
    EgressPolicy,
    Verdict,
    judge_address,
    judge_answers,
)

PUBLIC = EgressPolicy()
FIXTURE = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "egress_addresses.json").read_text("utf-8")
)

# First and last address of every denied IPv4 block, written out from the security rules.
IPV4_DENIED = [
    ("0.0.0.0", "0.255.255.255", "denied_this_network"),
    ("10.0.0.0", "10.255.255.255", "denied_private"),
    ("100.64.0.0", "100.127.255.255", "denied_shared"),
    ("127.0.0.0", "127.255.255.255", "denied_loopback"),
    ("168.63.129.16", "168.63.129.16", "denied_cloud_host"),
    ("169.254.0.0", "169.254.255.255", "denied_link_local"),
    ("172.16.0.0", "172.31.255.255", "denied_private"),
    ("192.0.0.0", "192.0.0.255", "denied_protocol_assignment"),
    ("192.0.2.0", "192.0.2.255", "denied_documentation"),
    ("192.31.196.0", "192.31.196.255", "denied_as112"),
    ("192.52.193.0", "192.52.193.255", "denied_multicast_tunnel"),
    ("192.88.99.0", "192.88.99.255", "denied_6to4"),
    ("192.168.0.0", "192.168.255.255", "denied_private"),
    ("192.175.48.0", "192.175.48.255", "denied_as112"),
    ("198.18.0.0", "198.19.255.255", "denied_benchmarking"),
    ("198.51.100.0", "198.51.100.255", "denied_documentation"),
    ("203.0.113.0", "203.0.113.255", "denied_documentation"),
    ("224.0.0.0", "239.255.255.255", "denied_multicast"),
    ("240.0.0.0", "255.255.255.255", "denied_reserved"),
]
ALL_ONES = "ffff:ffff:ffff:ffff:ffff:ffff"
# Every stretch of IPv6, end to end.
IPV6_STRETCHES = [
    ("::", "::", "denied_not_global_unicast"),
    ("::1", "::1", "denied_loopback"),
    ("::2", "::fffe:ffff:ffff", "denied_not_global_unicast"),
    ("::ffff:0:0", "::ffff:ffff:ffff", "denied_embeds_ipv4"),
    ("::1:0:0:0", "::fffe:ffff:ffff:ffff", "denied_not_global_unicast"),
    ("::ffff:0:0:0", "::ffff:0:ffff:ffff", "denied_embeds_ipv4"),
    ("::ffff:1:0:0", "64:ff9a:" + ALL_ONES, "denied_not_global_unicast"),
    ("64:ff9b::", "64:ff9b::ffff:ffff", "denied_embeds_ipv4"),
    ("64:ff9b::1:0:0", "64:ff9b:0:ffff:ffff:ffff:ffff:ffff", "denied_not_global_unicast"),
    ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "denied_embeds_ipv4"),
    ("64:ff9b:2::", "1fff:ffff:" + ALL_ONES, "denied_not_global_unicast"),
    ("2000::", "2000:ffff:" + ALL_ONES, "allowed"),
    ("2001::", "2001:1ff:" + ALL_ONES, "denied_protocol_assignment"),
    ("2001:200::", "2001:db7:" + ALL_ONES, "allowed"),
    ("2001:db8::", "2001:db8:" + ALL_ONES, "denied_documentation"),
    ("2001:db9::", "2001:ffff:" + ALL_ONES, "allowed"),
    ("2002::", "2002:ffff:" + ALL_ONES, "denied_6to4"),
    ("2003::", "2620:4f:7fff:ffff:ffff:ffff:ffff:ffff", "allowed"),
    ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", "denied_as112"),
    ("2620:4f:8001::", "3ffe:ffff:" + ALL_ONES, "allowed"),
    ("3fff::", "3fff:fff:" + ALL_ONES, "denied_documentation"),
    ("3fff:1000::", "3fff:ffff:" + ALL_ONES, "allowed"),
    ("4000::", "fbff:ffff:" + ALL_ONES, "denied_not_global_unicast"),
    ("fc00::", "fdff:ffff:" + ALL_ONES, "denied_private"),
    ("fe00::", "fe7f:ffff:" + ALL_ONES, "denied_not_global_unicast"),
    ("fe80::", "febf:ffff:" + ALL_ONES, "denied_link_local"),
    ("fec0::", "feff:ffff:" + ALL_ONES, "denied_not_global_unicast"),
    ("ff00::", "ffff:ffff:" + ALL_ONES, "denied_multicast"),
]


def ipv4_expectation(address: IPv4Address) -> str:
    for first, last, verdict in IPV4_DENIED:
        if IPv4Address(first) <= address <= IPv4Address(last):
            return verdict
    return "allowed"


def ipv6_expectation(address: IPv6Address) -> str:
    return next(
        verdict
        for first, last, verdict in IPV6_STRETCHES
        if IPv6Address(first) <= address <= IPv6Address(last)
    )


@pytest.mark.parametrize("text", FIXTURE["deny"])
def test_every_denied_address_of_the_fixture_is_denied(text: str) -> None:
    assert judge_address(ip_address(text), PUBLIC).startswith("denied_")


@pytest.mark.parametrize("text", FIXTURE["allow"])
def test_every_allowed_address_of_the_fixture_is_allowed(text: str) -> None:
    assert judge_address(ip_address(text), PUBLIC) is Verdict.ALLOWED


@pytest.mark.parametrize(("first", "last", "verdict"), IPV4_DENIED)
def test_an_ipv4_block_is_denied_to_its_edges_and_its_neighbours_are_judged_on_their_own(
    first: str, last: str, verdict: str
) -> None:
    low, high = int(IPv4Address(first)), int(IPv4Address(last))
    assert {
        judge_address(IPv4Address(number), PUBLIC)
        for number in (low, min(low + 1, high), (low + high) // 2, max(high - 1, low), high)
    } == {verdict}
    for number in (low - 1, high + 1):
        if 0 <= number < 2**32:
            neighbour = IPv4Address(number)
            assert judge_address(neighbour, PUBLIC) == ipv4_expectation(neighbour)


def test_the_ipv4_blocks_have_allowed_neighbours_except_where_two_blocks_touch() -> None:
    neighbours = {
        number
        for first, last, _ in IPV4_DENIED
        for number in (int(IPv4Address(first)) - 1, int(IPv4Address(last)) + 1)
        if 0 <= number < 2**32
    }
    denied = {
        str(IPv4Address(number))
        for number in neighbours
        if judge_address(IPv4Address(number), PUBLIC) is not Verdict.ALLOWED
    }
    assert denied == {"239.255.255.255", "240.0.0.0"}


@pytest.mark.parametrize(("first", "last", "verdict"), IPV6_STRETCHES)
def test_an_ipv6_stretch_has_one_verdict_from_its_first_to_its_last_address(
    first: str, last: str, verdict: str
) -> None:
    low, high = int(IPv6Address(first)), int(IPv6Address(last))
    assert {
        judge_address(IPv6Address(number), PUBLIC)
        for number in (low, min(low + 1, high), (low + high) // 2, max(high - 1, low), high)
    } == {verdict}


def test_the_ipv6_stretches_of_this_test_leave_no_gap() -> None:
    edges = [(int(IPv6Address(first)), int(IPv6Address(last))) for first, last, _ in IPV6_STRETCHES]
    assert edges[0][0] == 0
    assert edges[-1][1] == 2**128 - 1
    assert [low for low, _ in edges[1:]] == [high + 1 for _, high in edges[:-1]]


@given(st.ip_addresses(v=4))
def test_any_ipv4_address_is_judged_by_the_written_table(address: IPv4Address) -> None:
    assert judge_address(address, PUBLIC) == ipv4_expectation(address)


@given(st.ip_addresses(v=6))
@example(IPv6Address("fec0::1"))
@example(IPv6Address("5f00::1"))
def test_any_ipv6_address_is_judged_by_the_written_table(address: IPv6Address) -> None:
    assert judge_address(address, PUBLIC) == ipv6_expectation(address)


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "::"]))
def test_an_ipv6_form_of_an_ipv4_address_is_denied_whatever_it_embeds(
    embedded: IPv4Address, prefix: str
) -> None:
    address = IPv6Address(int(IPv6Address(prefix)) | int(embedded))
    assert judge_address(address, PUBLIC) is not Verdict.ALLOWED


def test_an_address_with_a_zone_id_is_denied_even_in_an_opened_network() -> None:
    policy = EgressPolicy(networks=(ip_network("fe80::/10"), ip_network("::/0")))
    assert judge_address(IPv6Address("fe80::1%eth0"), policy) == "denied_zone_id"
    assert judge_address(IPv6Address("2600::1%1"), policy) is Verdict.DENIED_ZONE_ID


@pytest.mark.parametrize(
    ("network", "address", "verdict"),
    [
        ("127.0.0.0/8", "127.0.0.0", "allowed"),
        ("127.0.0.0/8", "127.255.255.255", "allowed"),
        ("127.0.0.1/32", "127.0.0.2", "denied_loopback"),
        ("127.0.0.1/32", "127.0.0.0", "denied_loopback"),
        ("127.0.0.0/8", "10.0.0.1", "denied_private"),
        ("127.0.0.0/8", "::1", "denied_loopback"),
        ("127.0.0.0/8", "::ffff:127.0.0.1", "denied_embeds_ipv4"),
        ("127.0.0.0/8", "::7f00:1", "denied_not_global_unicast"),
        ("0.0.0.0/0", "::ffff:8.8.8.8", "denied_embeds_ipv4"),
        ("::ffff:0:0/96", "::ffff:127.0.0.1", "allowed"),
        ("::ffff:0:0/96", "127.0.0.1", "denied_loopback"),
        ("::/0", "10.0.0.1", "denied_private"),
        ("::1/128", "0.0.0.1", "denied_this_network"),
        ("fd00::/8", "fd12::1", "allowed"),
        ("127.0.0.0/8", "8.8.8.8", "allowed"),
    ],
)
def test_an_opened_network_allows_its_own_addresses_and_no_others(
    network: str, address: str, verdict: str
) -> None:
    policy = EgressPolicy(networks=(ip_network("192.0.2.0/24"), ip_network(network)))
    assert judge_address(ip_address(address), policy) == verdict


def test_a_network_is_opened_from_its_first_to_its_last_address_in_its_own_family() -> None:
    policy = EgressPolicy(networks=(ip_network("10.0.0.0/30"), ip_network("::/126")))
    numbers = range(int(IPv4Address("10.0.0.0")) - 1, int(IPv4Address("10.0.0.3")) + 2)
    assert [policy.opens(4, number) for number in numbers] == [False, True, True, True, True, False]
    assert [policy.opens(6, number) for number in (3, 4)] == [True, False]
    assert policy.opens(4, 3) is False


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([], "denied_no_address"),
        (["8.8.8.8"], "allowed"),
        (["8.8.8.8", "2600::1", "1.1.1.1"], "allowed"),
        (["8.8.8.8", "10.0.0.1"], "denied_private"),
        (["10.0.0.1", "8.8.8.8"], "denied_private"),
        (["8.8.8.8", "::1", "10.0.0.1", "9.9.9.9"], "denied_loopback"),
    ],
)
def test_a_look_up_is_allowed_only_when_it_has_answers_and_all_are_allowed(
    answers: list[str], verdict: str
) -> None:
    assert judge_answers(map(ip_address, answers), PUBLIC) == verdict


def test_the_policy_without_arguments_is_https_on_443_to_the_public_internet() -> None:
    assert EgressPolicy() == EgressPolicy(networks=(), ports=((443, 443),), allow_http=False)
    assert not PUBLIC.allows_local_names
    assert EgressPolicy(networks=(ip_network("10.0.0.0/8"),)).allows_local_names
    assert (
        repr(PUBLIC)
        == "EgressPolicy(networks=(), ports=((443, 443),), allow_http=False, inbox_prefix=None)"
    )


def test_a_port_is_allowed_when_it_lies_in_one_of_the_ranges() -> None:
    policy = EgressPolicy(ports=((443, 443), (8000, 8002)))
    candidates = (1, 442, 443, 444, 7999, 8000, 8001, 8002, 8003)
    assert [port for port in candidates if policy.allows_port(port)] == [443, 8000, 8001, 8002]
