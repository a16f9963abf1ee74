"""Settings are CUEPOST_ variables alone; a bad one stops the start with one clear line."""

from base64 import b64encode
from datetime import UTC, datetime
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from cuepost.domain.access import Role
from cuepost.settings import CLIENT_VARIABLES, VARIABLES, BadSettings, Settings, load
from cuepost.settings.database_url import DatabaseUrl
from cuepost.settings.mail import SmtpUrl

KEY, OLD_KEY = bytes(range(32)), bytes(reversed(range(32)))
START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2126, 1, 1, tzinfo=UTC)
CANARY = "canary-of-the-settings"


def loaded(**variables: str) -> Settings:
    return load({f"CUEPOST_{name}": value for name, value in variables.items()})


def complaint(**variables: str) -> str:
    with pytest.raises(BadSettings) as caught:
        loaded(**variables)
    return str(caught.value)


def test_without_any_variable_every_setting_has_the_default_of_the_contract() -> None:
    assert loaded() == Settings(
        data_dir=Path("cuepost-data"),
        database_url=DatabaseUrl(path=Path("cuepost-data/cuepost.sqlite3")),
        database_connections=20,
        database_idle_timeout=300,
        database_pooler="none",
        database_direct_url=None,
        database_replica_url=None,
        database_replica_max_lag=30,
        base_url="http://127.0.0.1:8000",
        host="127.0.0.1",
        port=8000,
        master_key=None,
        retry_delays=(60, 300),
        attempt_timeout=15,
        retention_days=30,
        rotation_overlap_hours=24,
        result_link_ttl=900,
        media_url=Path("cuepost-data/media").absolute().as_uri(),
        s3_endpoint=None,
        s3_region=None,
        s3_path_style=True,
        worker_concurrency=512,
        endpoint_concurrency=8,
        max_endpoints_per_account=20,
        webhooks_access=False,
        operator_pages=True,
        receiver_networks=(),
        receiver_ports=((443, 443),),
        receiver_http=False,
        extra_ca_file=None,
        rate_limit=6000,
        service_rate_limit=600_000,
        worker_port=None,
        traces=False,
        otlp_metrics=False,
        log_level="INFO",
        log_format="text",
        smtp_url=None,
        smtp_from=None,
        oidc_issuer=None,
        oidc_client_id=None,
        oidc_client_secret=None,
        oidc_name="",
        oidc_scopes=("openid", "email"),
        oidc_account_claim="cuepost_account",
        oidc_role_claim="cuepost_role",
        oidc_roles={role.value: role for role in Role},
        oidc_default_role=None,
        password_sign_in=True,
        cell="",
        trusted_proxies=(),
        portal_origins=(),
        frame_ancestors=(),
        request_line_limit=8_192,
        header_count_limit=100,
        header_bytes_limit=32_768,
        head_timeout=10,
        body_timeout=15,
        answer_timeout=30,
        request_timeout=10,
        connections_per_client=512,
        connections=4_096,
        metrics_host="127.0.0.1",
        metrics_port=None,
    )


def test_every_setting_can_be_set(tmp_path: Path) -> None:
    keys = f"{b64encode(KEY).decode()}, {b64encode(OLD_KEY).decode()}"
    assert loaded(
        DATA_DIR=str(tmp_path),
        DATABASE_URL="postgres://user:word@db:5433/cuepost?sslmode=require",
        DATABASE_CONNECTIONS="4",
        DATABASE_IDLE_TIMEOUT="60",
        DATABASE_POOLER="transaction",
        DATABASE_DIRECT_URL="postgres://user:word@db:5432/cuepost",
        DATABASE_REPLICA_URL="postgres://user:word@standby:5432/cuepost",
        DATABASE_REPLICA_MAX_LAG="2.5",
        BASE_URL="https://hooks.example.com/cuepost",
        HOST="::1",
        PORT="65535",
        MASTER_KEY=keys,
        RETRY_DELAYS="0.5, 10,86400",
        ATTEMPT_TIMEOUT="2.5",
        RETENTION_DAYS="7",
        ROTATION_OVERLAP_HOURS="0.25",
        RESULT_LINK_TTL="60",
        MEDIA_URL="s3://results/exports",
        S3_ENDPOINT="https://s3.example.com:9000",
        S3_REGION="eu-central-1",
        S3_PATH_STYLE="false",
        WORKER_CONCURRENCY="64",
        ENDPOINT_CONCURRENCY="2",
        MAX_ENDPOINTS_PER_ACCOUNT="3",
        WEBHOOKS_ACCESS="open",
        RECEIVER_NETWORKS="127.0.0.0/8,::1/128",
        RECEIVER_PORTS="443,8000-8999",
        RECEIVER_HTTP="true",
        EXTRA_CA_FILE="",
        RATE_LIMIT="60",
        SERVICE_RATE_LIMIT="600",
        WORKER_PORT="9100",
        TRACES="true",
        OTLP_METRICS="true",
        LOG_LEVEL="debug",
        LOG_FORMAT="json",
        CELL="eu1",
        TRUSTED_PROXIES="10.0.0.0/8",
        REQUEST_LINE_LIMIT="1024",
        HEADER_COUNT_LIMIT="50",
        HEADER_BYTES_LIMIT="4096",
        HEAD_TIMEOUT="2.5",
        BODY_TIMEOUT="3",
        ANSWER_TIMEOUT="4",
        REQUEST_TIMEOUT="5",
        CONNECTIONS_PER_CLIENT="5",
        CONNECTIONS="6",
        METRICS_HOST="10.0.0.1",
        METRICS_PORT="9101",
        OPERATOR_PAGES="off",
        SMTP_URL="smtps://me%40example.com:p%3Aw@mail.example.com",
        SMTP_FROM="alerts@example.com",
        OIDC_ISSUER="https://id.example.com/realms/staff/",
        OIDC_CLIENT_ID="cuepost",
        OIDC_CLIENT_SECRET="a=b",
        OIDC_NAME="Example ID",
        OIDC_SCOPES="openid email groups",
        OIDC_ACCOUNT_CLAIM="org",
        OIDC_ROLE_CLAIM="",
        OIDC_ROLES="a=b=owner, staff = viewer",
        OIDC_DEFAULT_ROLE="viewer",
        PASSWORD_SIGN_IN="off",
        PORTAL_ORIGINS="https://app.example.com, https://b.example:8443",
        FRAME_ANCESTORS="https://app.example.com",
    ) == Settings(
        portal_origins=("https://app.example.com", "https://b.example:8443"),
        frame_ancestors=("https://app.example.com",),
        data_dir=tmp_path,
        database_url=DatabaseUrl(url="postgresql://user:word@db:5433/cuepost?sslmode=require"),
        database_connections=4,
        database_idle_timeout=60,
        database_pooler="transaction",
        database_direct_url=DatabaseUrl(url="postgresql://user:word@db:5432/cuepost"),
        database_replica_url=DatabaseUrl(url="postgresql://user:word@standby:5432/cuepost"),
        database_replica_max_lag=2.5,
        base_url="https://hooks.example.com/cuepost",
        host="::1",
        port=65_535,
        master_key=(KEY, OLD_KEY),
        retry_delays=(0.5, 10, 86_400),
        attempt_timeout=2.5,
        retention_days=7,
        rotation_overlap_hours=0.25,
        result_link_ttl=60,
        media_url="s3://results/exports",
        s3_endpoint="https://s3.example.com:9000",
        s3_region="eu-central-1",
        s3_path_style=False,
        worker_concurrency=64,
        endpoint_concurrency=2,
        max_endpoints_per_account=3,
        webhooks_access=True,
        operator_pages=False,
        receiver_networks=(IPv4Network("127.0.0.0/8"), IPv6Network("::1/128")),
        receiver_ports=((443, 443), (8000, 8999)),
        receiver_http=True,
        extra_ca_file=None,
        rate_limit=60,
        service_rate_limit=600,
        worker_port=9100,
        traces=True,
        otlp_metrics=True,
        log_level="DEBUG",
        log_format="json",
        smtp_url=SmtpUrl("smtps", "mail.example.com", 465, "me@example.com", "p:w"),
        smtp_from="alerts@example.com",
        oidc_issuer="https://id.example.com/realms/staff/",
        oidc_client_id="cuepost",
        oidc_client_secret="a=b",
        oidc_name="Example ID",
        oidc_scopes=("openid", "email", "groups"),
        oidc_account_claim="org",
        oidc_role_claim=None,
        oidc_roles={"a=b": Role.OWNER, "staff": Role.VIEWER},
        oidc_default_role=Role.VIEWER,
        password_sign_in=False,
        cell="eu1",
        trusted_proxies=(IPv4Network("10.0.0.0/8"),),
        request_line_limit=1_024,
        header_count_limit=50,
        header_bytes_limit=4_096,
        head_timeout=2.5,
        body_timeout=3,
        answer_timeout=4,
        request_timeout=5,
        connections_per_client=5,
        connections=6,
        metrics_host="10.0.0.1",
        metrics_port=9101,
    )


def test_a_default_that_follows_from_other_settings_follows_them(tmp_path: Path) -> None:
    settings = loaded(DATA_DIR=str(tmp_path), PORT="9000")

    assert settings.database_url == DatabaseUrl(path=tmp_path / "cuepost.sqlite3")
    assert settings.media_url == f"file://{tmp_path}/media"
    assert settings.base_url == "http://127.0.0.1:9000"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("sqlite:///data/cuepost.db", Path("data/cuepost.db")),
        ("sqlite:////var/lib/cuepost.db", Path("/var/lib/cuepost.db")),
    ],
)
def test_an_sqlite_url_has_three_slashes_and_a_path(text: str, path: Path) -> None:
    assert loaded(DATABASE_URL=text).database_url == DatabaseUrl(path=path)


def certificate() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "anchor")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, START, END)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def test_a_file_of_trust_anchors_must_hold_certificates(tmp_path: Path) -> None:
    anchors = tmp_path / "anchors.pem"
    anchors.write_bytes(certificate())
    assert loaded(EXTRA_CA_FILE=str(anchors)).extra_ca_file == anchors

    anchors.write_text("no certificate")
    assert complaint(EXTRA_CA_FILE=str(anchors)).endswith(
        "expected a file with certificates in PEM form."
    )


def test_variables_of_others_and_those_reserved_for_tests_are_ignored() -> None:
    assert load({"PATH": "/bin", "CUEPOST_TEST_DATABASE_URL": "anything"}) == loaded()


def test_variables_of_the_developers_tools_are_left_alone() -> None:
    reported = {name.removeprefix("CUEPOST_"): "anything" for name in CLIENT_VARIABLES}
    assert loaded(**reported) == loaded()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("PROT", "did you mean CUEPOST_PORT?"),
        ("RETRY_DELAY", "did you mean CUEPOST_RETRY_DELAYS?"),
        ("Port", "did you mean CUEPOST_PORT?"),
        ("ZZZZ", "'cuepost serve --help' lists them all."),
    ],
)
def test_an_unknown_variable_is_refused_with_the_nearest_name(name: str, hint: str) -> None:
    assert complaint(**{name: "1"}) == f"CUEPOST_{name} is not a setting of cuepost; {hint}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATA_DIR", " "),
        ("DATA_DIR", "~nobody-of-that-name/data"),
        ("BASE_URL", "hooks.example.com"),
        ("BASE_URL", "ftp://hooks.example.com"),
        ("BASE_URL", "https://hooks.example.com/"),
        ("BASE_URL", "https://hooks.example.com?x"),
        ("BASE_URL", "https://hooks.example.com#x"),
        ("BASE_URL", "https://user@hooks.example.com"),
        ("BASE_URL", "https://hooks.example.com:99999"),
        ("BASE_URL", "https://hooks example.com"),
        ("BASE_URL", "https://[::1"),
        ("BASE_URL", "https://:443"),
        ("HOST", "127.0.0.1/8"),
        ("HOST", ""),
        ("PORT", "0"),
        ("PORT", "65536"),
        ("PORT", "8_000"),
        ("PORT", "٨٠"),
        ("PORT", "tcp://10.0.0.1:80"),
        ("RETRY_DELAYS", ""),
        ("RETRY_DELAYS", "60,"),
        ("RETRY_DELAYS", "-1"),
        ("RETRY_DELAYS", "inf"),
        ("RETRY_DELAYS", "86401"),
        ("ATTEMPT_TIMEOUT", "0"),
        ("ATTEMPT_TIMEOUT", "nan"),
        ("RETENTION_DAYS", "0"),
        ("ROTATION_OVERLAP_HOURS", "-1"),
        ("MEDIA_URL", "http://media.example.com"),
        ("MEDIA_URL", "file://relative/path"),
        ("MEDIA_URL", "file:///media#1"),
        ("MEDIA_URL", "file:///media?a=b"),
        ("MEDIA_URL", "s3://results/exports/../all"),
        ("MEDIA_URL", "s3://results//exports"),
        ("MEDIA_URL", "s3://results/?x"),
        ("S3_ENDPOINT", "s3.example.com"),
        ("S3_REGION", "Frankfurt"),
        ("OIDC_ISSUER", "id.example.com"),
        ("OIDC_ISSUER", "https://id.example.com?x"),
        ("OIDC_CLIENT_ID", "a b"),
        ("OIDC_NAME", "x" * 51),
        ("OIDC_SCOPES", "email"),
        ("OIDC_SCOPES", ""),
        ("OIDC_ACCOUNT_CLAIM", ""),
        ("OIDC_ROLES", ""),
        ("OIDC_ROLES", "admins"),
        ("OIDC_ROLES", "=owner"),
        ("OIDC_ROLES", "admins=root"),
        ("OIDC_ROLES", "a=owner,a=viewer"),
        ("OIDC_DEFAULT_ROLE", "owner"),
        ("PASSWORD_SIGN_IN", "false"),
        ("S3_PATH_STYLE", ""),
        ("WEBHOOKS_ACCESS", "Open"),
        ("RECEIVER_HTTP", "yes"),
        ("EXTRA_CA_FILE", "nowhere.pem"),
    ],
)
def test_a_bad_value_is_named_and_what_is_expected_is_said(name: str, value: str) -> None:
    expected = VARIABLES[f"CUEPOST_{name}"].kind.expected

    assert complaint(**{name: value}) == f"CUEPOST_{name}={value!r}: expected {expected}."


@pytest.mark.parametrize(
    "value",
    [
        "",
        CANARY,
        f"mysql://user:{CANARY}@db/name",
        f"postgresql://user:{CANARY}@db",
        f"postgresql://user:{CANARY}@db/name/more",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///data/?mode=ro",
    ],
)
def test_a_bad_database_url_is_not_repeated(value: str) -> None:
    expected = VARIABLES["CUEPOST_DATABASE_URL"].kind.expected

    assert complaint(DATABASE_URL=value) == f"CUEPOST_DATABASE_URL: expected {expected}."


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:word@one:5432,two:5433/cuepost?target_session_attrs=read-write",
        "postgresql://user@/cuepost?host=/run/postgresql&port=5433",
        "postgresql://user@[::1]:5432/cuepost?sslmode=verify-full&sslrootcert=/etc/ca.pem",
        "postgresql://db/cuepost?application_name=mine&options=-c%20work_mem%3D8MB",
    ],
)
def test_a_database_url_is_what_libpq_takes(url: str) -> None:
    assert loaded(DATABASE_URL=url).database_url == DatabaseUrl(url=url)


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("db:port/name", "a host or its port cannot be read"),
        ("db:70000/name", "a host or its port cannot be read"),
        ("one,,two/name", "a host or its port cannot be read"),
        ("/name", "the host is missing or given twice"),
        ("db/name?host=other", "the host is missing or given twice"),
        ("db/name?connect_timeout=3", "'connect_timeout' is not one of application_name, "),
        (f"db/name?{CANARY}@db=3", "a parameter is not one of application_name, "),
        ("db/name?sslmode=", "'sslmode' is one of disable, allow, "),
        ("db/name?sslmode=on", "'sslmode' is one of disable, allow, "),
        ("db/name?sslrootcert=", "'sslrootcert' has no value"),
        ("db/name?sslmode=require&sslmode=disable", "a parameter is given twice"),
        ("one,two/name?target_session_attrs=rw", "'target_session_attrs' is one of any, read-"),
    ],
)
def test_a_database_url_that_is_refused_says_which_part_is_wrong(rest: str, why: str) -> None:
    said = complaint(DATABASE_URL=f"postgresql://user:{CANARY}@{rest}")
    assert said.startswith(f"CUEPOST_DATABASE_URL: {why}")
    assert CANARY not in said


@pytest.mark.parametrize("name", ["DATABASE_DIRECT_URL", "DATABASE_REPLICA_URL"])
def test_a_second_database_url_that_is_refused_is_not_repeated(name: str) -> None:
    expected = VARIABLES[f"CUEPOST_{name}"].kind.expected
    assert complaint(**{name: f"sqlite:///{CANARY}"}) == f"CUEPOST_{name}: expected {expected}."


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_POOLER", "session"),
        ("DATABASE_DIRECT_URL", "postgresql://db/cuepost"),
        ("DATABASE_REPLICA_URL", "postgresql://db/cuepost"),
    ],
)
def test_an_embedded_store_has_neither_pooler_nor_replica(name: str, value: str) -> None:
    why = "it is for PostgreSQL, and the store is SQLite."
    assert complaint(**{name: value}) == f"CUEPOST_{name}: {why}"


@pytest.mark.parametrize("mode", ["transaction", "transaction-prepared"])
def test_a_pooler_by_transaction_needs_a_way_past_it(mode: str) -> None:
    url = "postgresql://db/cuepost"
    assert complaint(DATABASE_URL=url, DATABASE_POOLER=mode) == (
        f"CUEPOST_DATABASE_POOLER: '{mode}' needs CUEPOST_DATABASE_DIRECT_URL as well."
    )
    assert loaded(DATABASE_URL=url, DATABASE_POOLER="session").database_pooler == "session"


def test_a_database_is_shown_by_its_hosts() -> None:
    for url, shown in (
        ("postgresql://user:word@one:5432,two/cuepost", "postgresql://one:5432,two/cuepost"),
        ("postgresql://user@/cuepost?host=/run/postgresql", "postgresql:///run/postgresql/cuepost"),
    ):
        assert loaded(DATABASE_URL=url).database_url.shown == shown


@pytest.mark.parametrize(
    "value", ["", CANARY, b64encode(KEY[:31]).decode(), f"{b64encode(KEY).decode()},"]
)
def test_a_bad_master_key_is_not_repeated(value: str) -> None:
    assert complaint(MASTER_KEY=value) == (
        "CUEPOST_MASTER_KEY: expected 32 bytes as base64, or several such keys, comma-separated."
    )


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("RECEIVER_NETWORKS", "10.0.0.1/8", "'10.0.0.1/8' has bits set beyond its prefix"),
        ("RECEIVER_PORTS", "http", "'http' is not a port or a range of ports"),
    ],
)
def test_the_egress_rules_explain_themselves(name: str, value: str, why: str) -> None:
    assert complaint(**{name: value}).startswith(f"CUEPOST_{name}={value!r}: {why}")


def test_retries_must_end_before_their_history_is_cleared() -> None:
    assert complaint(RETRY_DELAYS="86400", RETENTION_DAYS="1") == (
        "CUEPOST_RETRY_DELAYS: the last attempt would come after CUEPOST_RETENTION_DAYS."
    )


def test_neither_the_master_key_nor_the_database_password_is_shown() -> None:
    settings = loaded(
        MASTER_KEY=b64encode(KEY).decode(),
        DATABASE_URL=f"postgresql://user:{CANARY}@db:5432/cuepost",
    )

    assert settings.database_url.shown == "postgresql://db:5432/cuepost"
    for shown in (repr(settings), str(settings), repr(settings.database_url)):
        assert CANARY not in shown
        assert repr(KEY) not in shown
        assert b64encode(KEY).decode() not in shown


def test_every_setting_says_what_it_means() -> None:
    assert all(setting.meaning.endswith(".") for setting in VARIABLES.values())
    assert all(setting.shown_default for setting in VARIABLES.values())


PROVIDER = {
    "OIDC_ISSUER": "https://id.example.com",
    "OIDC_CLIENT_ID": "cuepost",
    "OIDC_CLIENT_SECRET": CANARY,
}


@pytest.mark.parametrize("missing", list(PROVIDER))
def test_a_provider_needs_issuer_id_and_secret(missing: str) -> None:
    given = {name: value for name, value in PROVIDER.items() if name != missing}
    first = f"CUEPOST_{next(iter(given))}"
    assert complaint(**given) == f"CUEPOST_{missing}: it is needed, because {first} is set."


def test_without_a_claim_for_roles_there_must_be_a_default() -> None:
    assert complaint(**PROVIDER, OIDC_ROLE_CLAIM="") == (
        "CUEPOST_OIDC_DEFAULT_ROLE: choose a role, because CUEPOST_OIDC_ROLE_CLAIM is empty."
    )


@pytest.mark.parametrize("host", ["127.0.0.1:9000", "localhost", "[::1]:9000"])
def test_an_issuer_without_tls_is_on_this_machine(host: str) -> None:
    issuer = f"http://{host}/realm"
    assert loaded(**(PROVIDER | {"OIDC_ISSUER": issuer})).oidc_issuer == issuer
    assert complaint(OIDC_ISSUER="http://id.example.com") == (
        "CUEPOST_OIDC_ISSUER='http://id.example.com': expected https; "
        "http is only for a provider on this machine."
    )


def test_the_secret_of_the_client_is_not_repeated() -> None:
    assert CANARY not in complaint(OIDC_CLIENT_SECRET=f"{CANARY} ")
    assert CANARY not in repr(loaded(**PROVIDER))


@pytest.mark.parametrize("name", ["PORTAL_ORIGINS", "FRAME_ANCESTORS"])
def test_origins_without_tls_are_for_a_service_on_this_machine(name: str) -> None:
    local = "http://127.0.0.1:9000"
    assert getattr(loaded(**{name: local}), name.lower()) == (local,)
    refused = complaint(**{name: local, "BASE_URL": "https://hooks.example.com"})
    assert refused.startswith(f"CUEPOST_{name}: http:// is only for")
    for value in ("app.example.com", "https://app.example.com/", "http://app.example.com"):
        assert complaint(**{name: value}).startswith(f"CUEPOST_{name}={value!r}: ")


def test_frames_need_https() -> None:
    wanted = {"FRAME_ANCESTORS": "https://app.example.com"}
    assert complaint(**wanted, BASE_URL="http://hooks.example.com") == (
        "CUEPOST_FRAME_ANCESTORS: browsers keep no cookies in a frame without https."
    )
