"""All settings of the service: environment variables that start with CUEPOST_.

The reference page is generated from this package. A new setting is a field of `Settings`, or of
the class of its subject: database, clients, e-mail or signing in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from cuepost.domain.egress_policy import Network, PortRange
from cuepost.settings import kinds
from cuepost.settings.database import contradiction
from cuepost.settings.database_url import DatabaseUrl
from cuepost.settings.kinds import decimal, optional, whole
from cuepost.settings.portal import insecure_origin
from cuepost.settings.setting import Setting
from cuepost.settings.sign_in import SignInSettings, sign_in_contradiction

PREFIX = "CUEPOST_"
RESERVED_FOR_TESTS = "CUEPOST_TEST_"


class BadSettings(Exception):
    """A setting is unknown or cannot be used; the message is one line that says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(SignInSettings):
    data_dir: Annotated[
        Path,
        Setting(
            kinds.FOLDER,
            "./cuepost-data",
            "Holds the embedded store, the master key file and local media.",
        ),
    ]
    base_url: Annotated[
        str,
        Setting(
            kinds.BASE_URL,
            None,
            "The public URL of the service, with which every link that it writes begins. It is "
            "never taken from a request.",
            "`http://127.0.0.1:PORT`",
        ),
    ]
    host: Annotated[str, Setting(kinds.HOST, "127.0.0.1", "The address to listen on.")]
    port: Annotated[int, Setting(whole(1, 65_535), "8000", "The port to listen on.")]
    master_key: Annotated[
        tuple[bytes, ...] | None,
        Setting(
            kinds.MASTER_KEY,
            None,
            "Encrypts signing secrets in the store. Several, for a rotation: the first encrypts, "
            "all decrypt. Every process on the same store needs the same.",
            "the file `master.key` in `DATA_DIR`, created at the first start",
        ),
    ] = field(repr=False)
    retry_delays: Annotated[
        tuple[float, ...],
        Setting(
            kinds.DELAYS,
            "60,300",
            "Pauses before the second, third, … attempt, each counted from the end of the previous "
            "one.",
        ),
    ]
    attempt_timeout: Annotated[
        float,
        Setting(
            decimal(0.1, 120, "seconds"),
            "15",
            "The timeout of an attempt: DNS, connection, TLS, request and response head.",
        ),
    ]
    retention_days: Annotated[
        int, Setting(whole(1, 3_650), "30", "How long delivery history is kept.")
    ]
    rotation_overlap_hours: Annotated[
        float,
        Setting(
            decimal(0, 720, "hours"),
            "24",
            "How long the previous secret still signs after a rotation.",
        ),
    ]
    result_link_ttl: Annotated[
        int,
        Setting(
            whole(1, 604_800),
            "900",
            "How many seconds a download link is valid; never past the project's access window.",
        ),
    ]
    media_url: Annotated[
        str,
        Setting(
            kinds.MEDIA_URL,
            None,
            "Where the files of exports are stored.",
            "`file://DATA_DIR/media`",
        ),
    ]
    s3_endpoint: Annotated[
        str | None,
        Setting(
            optional(kinds.BASE_URL),
            "",
            "The URL of S3 in download links. Empty: `AWS_ENDPOINT_URL`, or AWS itself. "
            "Credentials come from `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and "
            "`AWS_SESSION_TOKEN`, or from the role of the machine or container.",
        ),
    ]
    s3_region: Annotated[
        str | None,
        Setting(
            optional(kinds.REGION),
            "",
            "The region of the bucket. Empty: `AWS_REGION`, or `us-east-1`.",
        ),
    ]
    s3_path_style: Annotated[
        bool,
        Setting(
            kinds.BOOLEAN,
            "true",
            "Whether links have the bucket in their path; otherwise it is part of the host name.",
        ),
    ]
    worker_concurrency: Annotated[
        int, Setting(whole(1, 100_000), "512", "Attempts in flight in one process.")
    ]
    endpoint_concurrency: Annotated[
        int,
        Setting(whole(1, 10_000), "8", "Attempts in flight to one endpoint, from all processes."),
    ]
    max_endpoints_per_account: Annotated[
        int, Setting(whole(1, 10_000), "20", "How many endpoints an account may have.")
    ]
    webhooks_access: Annotated[
        bool,
        Setting(
            kinds.ACCESS,
            "closed",
            "Whether new accounts may use webhooks at once. The account made by `setup` may.",
        ),
    ]
    receiver_networks: Annotated[
        tuple[Network, ...],
        Setting(
            kinds.NETWORKS,
            "",
            "Networks that receivers may be in although the egress policy denies them.",
        ),
    ]
    receiver_ports: Annotated[
        tuple[PortRange, ...], Setting(kinds.PORTS, "443", "Ports that receivers may listen on.")
    ]
    receiver_http: Annotated[
        bool,
        Setting(kinds.BOOLEAN, "false", "Receivers without TLS; for benchmarks and local work."),
    ]
    extra_ca_file: Annotated[
        Path | None,
        Setting(kinds.CA_FILE, "", "Further CAs, for receivers and the OpenID provider."),
    ]
    rate_limit: Annotated[
        int,
        Setting(whole(1, 100_000_000), "6000", "Requests per minute with one account key."),
    ]
    service_rate_limit: Annotated[
        int,
        Setting(whole(1, 100_000_000), "600000", "Requests per minute with one service key."),
    ]
    worker_port: Annotated[
        int | None,
        Setting(
            optional(whole(1, 65_535)),
            "",
            "The port on which `cuepost worker` serves `/healthz`, `/readyz` and `/metrics`. "
            "Empty: none.",
        ),
    ]
    traces: Annotated[
        bool,
        Setting(
            kinds.BOOLEAN,
            "false",
            "Whether a span is exported for each attempt by OpenTelemetry, which is configured by "
            "its own `OTEL_…` variables; needs `cuepost[otel]`.",
        ),
    ]
    otlp_metrics: Annotated[
        bool,
        Setting(
            kinds.BOOLEAN,
            "false",
            "Whether the metrics of `/metrics` are also exported by OpenTelemetry, which is "
            "configured by its own `OTEL_…` variables; needs `cuepost[otel]`.",
        ),
    ]
    log_level: Annotated[
        str,
        Setting(
            kinds.LOG_LEVEL,
            "info",
            "The lowest level that is logged; at `info` there is a line for each attempt.",
        ),
    ]
    log_format: Annotated[
        str,
        Setting(
            kinds.LOG_FORMAT,
            "text",
            "The format of log lines: `text`, which is shorter on a terminal, or `json`, one "
            "object per line.",
        ),
    ]


_HINTS = get_type_hints(Settings, include_extras=True)
VARIABLES: dict[str, Setting] = {
    PREFIX + name.upper(): _HINTS[name].__metadata__[0]
    for part in Settings.__mro__[:-1]
    for name in part.__annotations__
}

# The variables of the developer's tools, which a service ignores.
CLIENT_VARIABLES: dict[str, Setting] = {
    "CUEPOST_URL": Setting(
        kinds.BASE_URL, "http://127.0.0.1:8000", "The service that the developer's tools call."
    ),
    "CUEPOST_API_KEY": Setting(
        kinds.API_KEY, "", "A key for `trigger`, `deliveries`, `listen` and `mcp`."
    ),
    "CUEPOST_SERVICE_KEY": Setting(
        kinds.API_KEY, "", "A service key, with which `trigger` reports milestones."
    ),
    "CUEPOST_OPERATOR_KEY": Setting(
        kinds.API_KEY, "", "An operator key, for the calls about accounts in `cuepost.http`."
    ),
    "CUEPOST_WEBHOOK_SECRET": Setting(
        kinds.SIGNING_SECRETS, "", "Signing secrets for `verify` and `receiver check`."
    ),
}


def load(environ: Mapping[str, str]) -> Settings:
    """Raises only BadSettings, with a message of one line."""
    _refuse_unknown(environ)
    values = {
        name.removeprefix(PREFIX).lower(): _value(name, setting, environ)
        for name, setting in VARIABLES.items()
    }
    derived = {
        "database_url": DatabaseUrl(path=values["data_dir"] / "cuepost.sqlite3"),
        "base_url": f"http://127.0.0.1:{values['port']}",
        "media_url": (values["data_dir"].absolute() / "media").as_uri(),
    }
    values |= {name: value for name, value in derived.items() if values[name] is None}
    settings = Settings(**values)
    if timedelta(seconds=sum(settings.retry_delays)) >= timedelta(days=settings.retention_days):
        raise BadSettings(
            f"{PREFIX}RETRY_DELAYS: the last attempt would come after {PREFIX}RETENTION_DAYS."
        )
    found = contradiction(settings) or sign_in_contradiction(settings)
    if found := found or insecure_origin(settings.base_url, settings):
        name, why = found
        raise BadSettings(f"{PREFIX}{name.upper()}: {why}")
    return settings


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    for name in sorted(environ):
        ours = name.startswith(PREFIX) and not name.startswith(RESERVED_FOR_TESTS)
        if ours and name not in VARIABLES and name not in CLIENT_VARIABLES:
            known = [each.removeprefix(PREFIX) for each in VARIABLES]
            near = get_close_matches(name.removeprefix(PREFIX).upper(), known, 1)
            hint = (
                f"did you mean {PREFIX}{near[0]}?"
                if near
                else "'cuepost serve --help' lists them all."
            )
            raise BadSettings(f"{name} is not a setting of cuepost; {hint}")


def _value(name: str, setting: Setting, environ: Mapping[str, str]) -> Any:
    text = environ.get(name, setting.default)
    if text is None:
        return None
    try:
        return setting.kind.read(text)
    except ValueError as error:
        shown = "" if setting.kind.secret else f"={text!r}"
        why = str(error) or f"expected {setting.kind.expected}."
        raise BadSettings(f"{name}{shown}: {why}") from None
