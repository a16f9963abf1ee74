"""The settings about clients: limits, trusted proxies and metrics."""

from dataclasses import dataclass
from typing import Annotated

from cuepost.domain.egress_policy import Network
from cuepost.settings import kinds
from cuepost.settings.kinds import decimal, optional, whole
from cuepost.settings.portal import PortalSettings
from cuepost.settings.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundSettings(PortalSettings):
    cell: Annotated[
        str,
        Setting(
            kinds.CELL,
            "",
            "The name of this database, if several share out the accounts. Keys that are created "
            "here contain it, so that a proxy can route by key.",
        ),
    ]
    trusted_proxies: Annotated[
        tuple[Network, ...],
        Setting(
            kinds.NETWORKS,
            "",
            "Networks of the reverse proxies in front of the service. Only their "
            "`X-Forwarded-For` is used: its rightmost address that is not in these networks is "
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
            "The time within which the head of a request must arrive, from the connection or its "
            "first byte.",
        ),
    ]
    body_timeout: Annotated[
        float,
        Setting(
            decimal(0.1, 600, "seconds"),
            "15",
            "The time within which the body of a request must grow by 1 KiB or end.",
        ),
    ]
    answer_timeout: Annotated[
        float,
        Setting(
            decimal(0.1, 3_600, "seconds"),
            "30",
            "The time within which a client must read something of a waiting answer.",
        ),
    ]
    request_timeout: Annotated[
        float,
        Setting(
            decimal(0.1, 600, "seconds"),
            "10",
            "How long a request may take, without the time in which its body arrives. After that "
            "the answer is 503 with `Retry-After`, and says whether something may have been "
            "changed. Long polls and live lists are exempt.",
        ),
    ]
    connections_per_client: Annotated[
        int,
        Setting(
            whole(1, 100_000),
            "512",
            "Connections from one IPv4 address or one /64 of IPv6, except trusted proxies. Beyond "
            "it the connection that has been idle longest is closed, or the new one if none is "
            "idle.",
        ),
    ]
    connections: Annotated[
        int,
        Setting(
            whole(1, 1_000_000),
            "4096",
            "Connections of all clients in one process, but never more than half of its file "
            "descriptors. Beyond it connections are closed as for one client.",
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
            "The port on which `cuepost serve` and `cuepost api` serve `/metrics`. Empty: `PORT`, "
            "for every client.",
        ),
    ]
    operator_pages: Annotated[
        bool,
        Setting(
            kinds.SWITCH,
            "on",
            "Whether this process serves the operator's pages below `/operator`, which need an "
            "operator key. `off` keeps them from a port that everyone can reach.",
        ),
    ]
