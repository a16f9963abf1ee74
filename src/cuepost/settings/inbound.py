"""The settings about clients: what they may send, how slowly, from where, and what they may see."""

from dataclasses import dataclass
from typing import Annotated

from cuepost.domain.egress_policy import Network
from cuepost.settings import kinds
from cuepost.settings.kinds import decimal, optional, whole
from cuepost.settings.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundSettings:
    cell: Annotated[
        str,
        Setting(
            kinds.CELL,
            "",
            "The name of this database among several that share out the accounts. Keys that are "
            "made here carry it, so that a proxy can route by key.",
        ),
    ]
    trusted_proxies: Annotated[
        tuple[Network, ...],
        Setting(
            kinds.NETWORKS,
            "",
            "Networks of the reverse proxies in front of the service. From them alone "
            "`X-Forwarded-For` is believed: its rightmost address that is not in these networks is "
            "the client, for limits, the audit trail and logs.",
        ),
    ]
    request_line_limit: Annotated[
        int,
        Setting(
            whole(256, 65_536),
            "8192",
            "The longest address in a request line, in bytes; a longer one is refused with 414.",
        ),
    ]
    header_count_limit: Annotated[
        int,
        Setting(
            whole(10, 10_000), "100", "The most headers of a request; more are refused with 431."
        ),
    ]
    header_bytes_limit: Annotated[
        int,
        Setting(
            whole(1_024, 1_048_576),
            "32768",
            "The most bytes of all headers of a request; more are refused with 431.",
        ),
    ]
    head_timeout: Annotated[
        float,
        Setting(
            decimal(0.1, 600, "seconds"),
            "10",
            "In what time the head of a request has to arrive, from the connection or its first "
            "byte on.",
        ),
    ]
    body_timeout: Annotated[
        float,
        Setting(
            decimal(0.1, 600, "seconds"),
            "15",
            "In what time the body of a request has to grow by 1 KiB, or to end.",
        ),
    ]
    answer_timeout: Annotated[
        float,
        Setting(
            decimal(0.1, 3_600, "seconds"),
            "30",
            "How long a client may read nothing of an answer that waits for it.",
        ),
    ]
    request_timeout: Annotated[
        float,
        Setting(
            decimal(0.1, 600, "seconds"),
            "10",
            "How long the work for a request may take, the time in which its body arrives apart. "
            "Then it is answered with 503 and `Retry-After`, which say whether something may have "
            "been changed. Long polls and live lists are exempt.",
        ),
    ]
    connections_per_client: Annotated[
        int,
        Setting(
            whole(1, 100_000),
            "512",
            "Connections from one IPv4 address or one /64 of IPv6, trusted proxies apart. Beyond "
            "it the connection that has been idle longest is closed; if none is, the new one.",
        ),
    ]
    connections: Annotated[
        int,
        Setting(
            whole(1, 1_000_000),
            "4096",
            "Connections of all clients in one process, and never more than half of the "
            "descriptors that the system allows it. Beyond it as for one client.",
        ),
    ]
    metrics_host: Annotated[
        str,
        Setting(kinds.HOST, "127.0.0.1", "The address that `METRICS_PORT` is on."),
    ]
    metrics_port: Annotated[
        int | None,
        Setting(
            optional(whole(1, 65_535)),
            "",
            "Where `cuepost serve` and `cuepost api` show `/metrics`, and nowhere else then. "
            "Empty: on `PORT`, to every client.",
        ),
    ]
