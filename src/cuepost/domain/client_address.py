"""The address that a request comes from, and the address that limits are counted by."""

from collections.abc import Sequence
from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network

from cuepost.domain.egress_policy import Address, Network

# A subscriber gets at least a network of this size, and can use any address in it.
IPV6_PREFIX = 64
MOST_FORWARDED = 20


def client_of(peer: str, forwarded: Sequence[str], trusted: Sequence[Network]) -> str:
    """The rightmost address that is not a trusted proxy's.

    `forwarded` are the values of X-Forwarded-For in the order in which they came. Each proxy
    appends the address that it was called from, so only the entries of trusted proxies are used:
    the search from the right ends at the first other address, or at an invalid one.
    """
    client = _parsed(peer)
    if client is None:
        return peer
    hops = [hop for line in forwarded for hop in line.split(",")][-MOST_FORWARDED:]
    while hops and _is_in(client, trusted):
        further = _parsed(hops.pop())
        if further is None:
            break
        client = further
    return str(client)


def is_trusted(peer: str, trusted: Sequence[Network]) -> bool:
    address = _parsed(peer)
    return address is not None and _is_in(address, trusted)


def counted_address(address: str) -> str:
    """The address that limits are counted by: an IPv4 address, or the /64 of an IPv6 address."""
    parsed = _parsed(address)
    if parsed is None:
        return address
    if isinstance(parsed, IPv6Address):
        network = ip_network((int(parsed), IPV6_PREFIX), strict=False)
        assert isinstance(network, IPv6Network)
        return str(network)
    return str(parsed)


def _parsed(text: str) -> Address | None:
    """Accepts a port, which some proxies add; an IPv4-mapped IPv6 address becomes IPv4."""
    host = text.strip()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ip_address(host)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return IPv6Address(int(address))
        return address.ipv4_mapped or address
    return address


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)
