"""The egress policy: which addresses and ports may be called, with the operator's exceptions."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
PortRange = tuple[int, int]

HIGHEST_PORT = 65_535


class Verdict(StrEnum):
    """Whether the policy allows an address, and the reason if it does not."""

    ALLOWED = "allowed"
    DENIED_NO_ADDRESS = "denied_no_address"
    DENIED_ZONE_ID = "denied_zone_id"
    DENIED_THIS_NETWORK = "denied_this_network"
    DENIED_PRIVATE = "denied_private"
    DENIED_SHARED = "denied_shared"
    DENIED_LOOPBACK = "denied_loopback"
    DENIED_LINK_LOCAL = "denied_link_local"
    DENIED_PROTOCOL_ASSIGNMENT = "denied_protocol_assignment"
    DENIED_DOCUMENTATION = "denied_documentation"
    DENIED_AS112 = "denied_as112"
    DENIED_MULTICAST_TUNNEL = "denied_multicast_tunnel"
    DENIED_6TO4 = "denied_6to4"
    DENIED_EMBEDS_IPV4 = "denied_embeds_ipv4"
    DENIED_CLOUD_HOST = "denied_cloud_host"
    DENIED_BENCHMARKING = "denied_benchmarking"
    DENIED_MULTICAST = "denied_multicast"
    DENIED_RESERVED = "denied_reserved"
    DENIED_NOT_GLOBAL_UNICAST = "denied_not_global_unicast"


# In both tables a later row overrides an earlier row that contains it.
IPV4_TABLE: tuple[tuple[str, Verdict], ...] = (
    ("0.0.0.0/0", Verdict.ALLOWED),
    ("0.0.0.0/8", Verdict.DENIED_THIS_NETWORK),  # "this host", reaches loopback on Linux
    ("10.0.0.0/8", Verdict.DENIED_PRIVATE),
    ("100.64.0.0/10", Verdict.DENIED_SHARED),  # carrier-grade NAT, some clouds' metadata
    ("127.0.0.0/8", Verdict.DENIED_LOOPBACK),
    ("168.63.129.16/32", Verdict.DENIED_CLOUD_HOST),  # Azure's wire server, in public space
    ("169.254.0.0/16", Verdict.DENIED_LINK_LOCAL),  # cloud metadata services
    ("172.16.0.0/12", Verdict.DENIED_PRIVATE),
    ("192.0.0.0/24", Verdict.DENIED_PROTOCOL_ASSIGNMENT),
    ("192.0.2.0/24", Verdict.DENIED_DOCUMENTATION),
    ("192.31.196.0/24", Verdict.DENIED_AS112),  # sink for private reverse look-ups
    ("192.52.193.0/24", Verdict.DENIED_MULTICAST_TUNNEL),  # AMT relays
    ("192.88.99.0/24", Verdict.DENIED_6TO4),  # relays
    ("192.168.0.0/16", Verdict.DENIED_PRIVATE),
    ("192.175.48.0/24", Verdict.DENIED_AS112),
    ("198.18.0.0/15", Verdict.DENIED_BENCHMARKING),
    ("198.51.100.0/24", Verdict.DENIED_DOCUMENTATION),
    ("203.0.113.0/24", Verdict.DENIED_DOCUMENTATION),
    ("224.0.0.0/4", Verdict.DENIED_MULTICAST),
    ("240.0.0.0/4", Verdict.DENIED_RESERVED),  # with the broadcast address
)
# Everything outside 2000::/3 is denied; the other rows outside it only give a more exact reason.
IPV6_TABLE: tuple[tuple[str, Verdict], ...] = (
    ("::/0", Verdict.DENIED_NOT_GLOBAL_UNICAST),
    ("::1/128", Verdict.DENIED_LOOPBACK),
    ("::ffff:0:0/96", Verdict.DENIED_EMBEDS_IPV4),  # IPv4-mapped
    ("::ffff:0:0:0/96", Verdict.DENIED_EMBEDS_IPV4),  # IPv4-translated
    ("64:ff9b::/96", Verdict.DENIED_EMBEDS_IPV4),  # NAT64
    ("64:ff9b:1::/48", Verdict.DENIED_EMBEDS_IPV4),  # NAT64, local use
    ("2000::/3", Verdict.ALLOWED),
    ("2001::/23", Verdict.DENIED_PROTOCOL_ASSIGNMENT),  # Teredo, ORCHID, benchmarking
    ("2001:db8::/32", Verdict.DENIED_DOCUMENTATION),
    ("2002::/16", Verdict.DENIED_6TO4),
    ("2620:4f:8000::/48", Verdict.DENIED_AS112),
    ("3fff::/20", Verdict.DENIED_DOCUMENTATION),
    ("fc00::/7", Verdict.DENIED_PRIVATE),
    ("fe80::/10", Verdict.DENIED_LINK_LOCAL),
    ("ff00::/8", Verdict.DENIED_MULTICAST),
)


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """The receivers that the operator allows; by default the public internet on port 443.

    `networks` are allowed although the table denies them. If there are any, single-label and
    special-use names (`localhost`, `receiver.internal`) are allowed as well: receivers in such a
    network have no other name, and the address is checked at every connection anyway.

    `inbox_prefix` is the URL prefix of the service's own test inboxes. Such a URL is always
    allowed, because no connection is made: the delivery stays inside the service.
    """

    networks: tuple[Network, ...] = ()
    ports: tuple[PortRange, ...] = ((443, 443),)
    allow_http: bool = False
    inbox_prefix: str | None = None
    _opened: tuple[tuple[int, int, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        opened = tuple(
            (network.version, int(network.network_address), int(network.broadcast_address))
            for network in self.networks
        )
        object.__setattr__(self, "_opened", opened)

    @property
    def allows_local_names(self) -> bool:
        return bool(self.networks)

    def allows_port(self, port: int) -> bool:
        return any(first <= port <= last for first, last in self.ports)

    def opens(self, version: int, number: int) -> bool:
        """Whether the operator's networks contain this address, given as a number."""
        for opened_version, first, last in self._opened:
            if opened_version == version and first <= number <= last:
                return True
        return False


def judge_address(address: Address, policy: EgressPolicy) -> Verdict:
    number = int(address)
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return Verdict.DENIED_ZONE_ID
        version, starts, verdicts = 6, _IPV6_STARTS, _IPV6_VERDICTS
    else:
        version, starts, verdicts = 4, _IPV4_STARTS, _IPV4_VERDICTS
    verdict = verdicts[bisect_right(starts, number) - 1]
    if verdict is not Verdict.ALLOWED and policy.opens(version, number):
        return Verdict.ALLOWED
    return verdict


def judge_answers(addresses: Iterable[Address], policy: EgressPolicy) -> Verdict:
    """The verdict on the addresses of one look-up: the first denial; no address is a denial too."""
    verdict = Verdict.DENIED_NO_ADDRESS
    for address in addresses:
        verdict = judge_address(address, policy)
        if verdict is not Verdict.ALLOWED:
            break
    return verdict


def parse_ports(text: str) -> tuple[PortRange, ...]:
    """Read a list such as `443,8000-8999`, or raise ValueError with a sentence that says why."""
    return tuple(_parse_port_range(item.strip()) for item in text.split(","))


def parse_networks(text: str) -> tuple[Network, ...]:
    """Read a list such as `127.0.0.0/8,::1/128`, or raise ValueError with a sentence."""
    if not text.strip():
        return ()
    return tuple(_parse_network(item.strip()) for item in text.split(","))


def _parse_port_range(item: str) -> PortRange:
    first, dash, last = item.partition("-")
    bounds = (_parse_port(first, item), _parse_port(last if dash else first, item))
    if bounds[0] > bounds[1]:
        raise ValueError(f"The port range {item!r} is reversed; write the lower port first.")
    return bounds


def _parse_port(digits: str, item: str) -> int:
    if digits.isascii() and digits.isdecimal() and len(digits) <= 5:
        port = int(digits)
        if 1 <= port <= HIGHEST_PORT:
            return port
    raise ValueError(
        f"{item!r} is not a port or a range of ports; write numbers from 1 to {HIGHEST_PORT}, "
        "for example 443,8000-8999."
    )


def _parse_network(item: str) -> Network:
    address, slash, prefix = item.partition("/")
    # ip_network also accepts netmasks and zone ids, which are easy to misread.
    plain = "%" not in item and (not slash or prefix.isdecimal())
    try:
        network = ip_network(item if plain else "", strict=False)
    except ValueError:
        raise ValueError(
            f"{item!r} is not a network; write an address and a prefix length, "
            "for example 10.0.0.0/8 or fd00::/8."
        ) from None
    if ip_address(address) != network.network_address:
        raise ValueError(f"{item!r} has bits set beyond its prefix; write {network} instead.")
    return network


def _compile(table: tuple[tuple[str, Verdict], ...]) -> tuple[list[int], list[Verdict]]:
    """Flatten nested rows into adjacent spans: the start of each, and its verdict."""
    rows = [(ip_network(text), verdict) for text, verdict in table]
    spans = [
        (int(network.network_address), int(network.broadcast_address), verdict)
        for network, verdict in rows
    ]
    end = spans[0][1]
    starts = sorted({edge for first, last, _ in spans for edge in (first, last + 1) if edge <= end})
    verdicts = [
        next(verdict for first, last, verdict in reversed(spans) if first <= start <= last)
        for start in starts
    ]
    return starts, verdicts


_IPV4_STARTS, _IPV4_VERDICTS = _compile(IPV4_TABLE)
_IPV6_STARTS, _IPV6_VERDICTS = _compile(IPV6_TABLE)
