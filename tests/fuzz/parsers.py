"""Every parser that meets the outside, with what it is given and how alone it may refuse."""

import asyncio
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import starmap
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from msgspec import inspect
from starlette.requests import Request
from starlette.types import Message

from cuepost.adapters.answer_reader import AnswerReader, BadAnswer
from cuepost.adapters.media.link_tokens import LinkTokens
from cuepost.adapters.openid.discovery import discovered
from cuepost.adapters.openid.signatures import UnknownKey, signing_keys, verified_claims
from cuepost.domain.access import Role, key_id_in
from cuepost.domain.account_reference import account_reference, member_reference
from cuepost.domain.artifact import is_media_key
from cuepost.domain.egress_policy import EgressPolicy, parse_networks, parse_ports
from cuepost.domain.errors import Invalid, NotFound
from cuepost.domain.host_name import normalise_host_name
from cuepost.domain.id_token import ExpectedToken, TokenRefused, require_believable
from cuepost.domain.identity import IdentityRefused, IdentityRules, identity_of
from cuepost.domain.inbox import inbox_token_in
from cuepost.domain.origin import origin_of, parse_origins
from cuepost.domain.person import checked_email, checked_password, opaque_token_digest
from cuepost.domain.receiver_url import parse_receiver_url
from cuepost.domain.signing import SigningSecret
from cuepost.domain.url_fault import ReceiverUrlRefused
from cuepost.interfaces.mcp.calls import _arguments
from cuepost.interfaces.mcp.table import TOOLS
from cuepost.interfaces.mcp.tool import Tool
from cuepost.interfaces.media.conditions import Validators, part, refusal
from cuepost.interfaces.rest.milestones import Entry, EntryByEntry, ReportMilestones, entry_of
from cuepost.interfaces.rest.operation import Operation
from cuepost.interfaces.rest.problems import Rejected
from cuepost.interfaces.rest.request_input import BodyReader, read_query
from cuepost.interfaces.rest.table import OPERATIONS
from cuepost.interfaces.web.forms import BadForm, read_form
from cuepost.interfaces.web.json_text import highlighted
from cuepost.interfaces.web.protection import carries_token, form_token
from cuepost.interfaces.web.unknown_pages import accepts_html
from cuepost.interfaces.wire_models.accounts import AccountQuery
from cuepost.interfaces.wire_models.paging import cursor_of, id_in
from cuepost.ports.identity_provider import ProviderUnavailable
from cuepost.ports.media import Grant
from cuepost.settings import VARIABLES, BadSettings, load
from cuepost_receiver import VerificationFailed, verify
from cuepost_receiver.doctor import diagnose, read_headers
from cuepost_receiver.event import read_event
from cuepost_receiver.results.links import read_result
from cuepost_receiver.results.places import place_of, within
from cuepost_receiver.results.problems import ResultFailed
from cuepost_receiver.results.transfer import next_url
from cuepost_receiver.signing_key import key_of
from tests.adapters.test_answer_properties import ANSWERS, exchanged
from tests.fuzz.malformed import IDS, anything, blobs, documents, near, texts, visible
from tests.support.openid_issuer import RSA_KEY, public_jwk, signed

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
TOKEN = "cpk_01990000000070008000000000000021AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE"
INBOX = "https://cuepost.example.com/inbox/"
LINKS = LinkTokens([bytes(32), bytes([1]) * 32])
REPORT = next(each for each in OPERATIONS if each.body is ReportMilestones)
EPOCH = datetime(2026, 1, 2, tzinfo=UTC)
LINK = LINKS.write(Grant(UUID(int=7), UUID(int=8), bytes(16), EPOCH))
URLS = (
    *("https://hooks.example.com/cue?a=b", "https://bücher.example.com:443/", INBOX + "A" * 32),
    *("http://127.0.0.1:8000/x", "https://[2606:4700::1111]/", "https://xn--bcher-kva.example"),
)
POLICIES = (
    EgressPolicy(inbox_prefix=INBOX),
    EgressPolicy(parse_networks("0.0.0.0/0,::/0"), parse_ports("1-65535"), allow_http=True),
)
FILE = Validators('"v1"', EPOCH, EPOCH)
CONDITIONS = ("range", "if-range", "if-match", "if-none-match", "if-modified-since")
SIGNED = {
    "webhook-id": "0198c0de-9c4e-7d21-8a1b-3f6a5b7c8d90",
    "webhook-timestamp": "1767323045",
    "webhook-signature": "v1," + b64encode(bytes(32)).decode(),
}
EVENT = (
    '{"id":"0198c0de","type":"project.completed","createdAt":"2026-01-02T03:04:05.678Z",'
    '"data":{"projectId":"1","status":"completed"}}'
)
LINKED = {
    "projectId": "1",
    "status": "completed",
    "stage": "export",
    "accessExpiresAt": "2026-01-02T03:04:05Z",
    "links": [{"kind": "video", "name": "../a", "url": "https://x.example/", "sizeBytes": 1}],
}


@dataclass(frozen=True, slots=True)
class Parser:
    """It returns, or raises one of its `refusals`; nothing else, whatever comes."""

    name: str
    inputs: st.SearchStrategy[Any]
    read: Callable[[Any], object]
    refusals: tuple[type[Exception], ...] = ()


def fed(parts: list[bytes]) -> AnswerReader:
    reader = AnswerReader()
    for piece in parts:
        if piece and not reader.over:
            reader.feed(memoryview(piece))
    reader.connection_ended()
    return reader


def sent_form(body: bytes) -> object:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return asyncio.run(read_form(Request({"type": "http", "headers": []}, receive)))


def sent_body(headers: dict[str, str]) -> object:
    raw = {name.encode(): value.encode("latin-1") for name, value in headers.items()}

    async def receive() -> Message:
        return {"type": "http.request", "body": b'{"milestones":[{}]}', "more_body": False}

    return asyncio.run(BodyReader(replace(REPORT, body_limit=100)).read(raw, receive))


def setting(name: str) -> Parser:
    known = VARIABLES[name]
    seeds = filter(None, (known.default, "https://a.example", "1", "s3://bucket/a", "10.0.0.0/8"))
    more = ("postgresql://u:p@h:5432/d?sslmode=require", "sqlite:///./x", b64encode(bytes(32)))
    written = (*seeds, *(each if isinstance(each, str) else each.decode() for each in more))
    # The environment cannot hold the byte zero.
    inputs = texts(*written).filter(lambda text: "\x00" not in text)
    return Parser(name, inputs, lambda text: load({name: text}), (BadSettings,))


def body(operation: Operation) -> Parser:
    reader = BodyReader(operation)
    inputs = documents(operation.body)
    return Parser(f"body of {operation.name}", inputs, reader.decoded, (Invalid, Rejected))


def reported(raw: bytes) -> list[Entry]:
    """Whatever list of objects it is, there is something to say of each of them."""
    read, _ = BodyReader(REPORT).decoded(raw)
    assert isinstance(read, ReportMilestones | EntryByEntry)
    return [entry_of(each) for each in read.milestones]


def query(operation: Operation) -> Parser:
    names = [each.encode_name for each in inspect.type_info(operation.query).fields] or ["limit"]  # type: ignore[attr-defined]  # it is a struct
    inputs = blobs(*(f"{name}=1&cursor={cursor_of(UUID(int=1))}" for name in names))
    return Parser(
        f"query of {operation.name}",
        inputs,
        lambda raw: read_query(raw, operation.query),
        (Invalid,),
    )


def arguments(tool: Tool) -> Parser:
    inputs = near(inspect.type_info(tool.arguments)) | anything
    return Parser(f"arguments of {tool.name}", inputs, lambda it: _arguments(tool, it), (Invalid,))


def receiver_url(text: str) -> None:
    for policy in POLICIES:
        try:
            found = parse_receiver_url(text, policy)
        except ReceiverUrlRefused:
            continue
        assert found.text.isascii()


def believed(claims: dict[str, Any]) -> object:
    require_believable(claims, ExpectedToken("https://id.example", "cuepost", "n"), EPOCH)
    return identity_of(claims, IdentityRules("org", "a.b", {"x": Role.OWNER}, None))


def named(claims: dict[str, Any]) -> object:
    known = {"iss": "https://id.example", "sub": "ada"}
    return identity_of(claims | known, IdentityRules("org", "a.b", {"x": Role.OWNER}, None))


def some_of(known: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """These members, some of them missing or with any other value."""
    return st.fixed_dictionaries(
        {}, optional={name: st.just(value) | anything for name, value in known.items()}
    )


CLAIMS = {
    "iss": "https://id.example",
    "aud": "cuepost",
    "azp": "cuepost",
    "sub": "ada",
    "nonce": "n",
    "exp": EPOCH.timestamp() + 60,
    "iat": EPOCH.timestamp(),
    "nbf": EPOCH.timestamp(),
    "org": "acme",
    "a": {"b": "x"},
    "a.b": ["x"],
    "email": "a@b.c",
    "email_verified": True,
}
JWK = public_jwk(RSA_KEY, "rsa") | {"use": "sig", "alg": "RS256", "key_ops": ["verify"]}
DISCOVERY = {
    "issuer": "https://id.example",
    "token_endpoint": "https://id.example/token",
    "authorization_endpoint": "https://id.example/a",
    "jwks_uri": "https://id.example/k",
    "token_endpoint_auth_methods_supported": ["client_secret_post"],
}
headers = st.dictionaries(st.sampled_from(list(SIGNED)), visible(*SIGNED.values()), max_size=3)
PARSERS = (
    Parser("receiver URL", texts(*URLS), receiver_url),
    Parser(
        "host name",
        texts("hooks.example.com", "bücher.example", "xn--bcher-kva", "1.2.3.4"),
        normalise_host_name,
        (ReceiverUrlRefused,),
    ),
    Parser("networks", texts("10.0.0.0/8,fd00::/8"), parse_networks, (ValueError,)),
    Parser("ports", texts("443,8000-8999"), parse_ports, (ValueError,)),
    Parser("HTTP answer", st.lists(ANSWERS | st.binary(max_size=40)), fed, (BadAnswer,)),
    Parser("connection", ANSWERS, lambda raw: exchanged(raw, [3, 17, 40], None)),
    Parser("API key", texts(TOKEN), key_id_in),
    Parser("cursor", texts(cursor_of(UUID(int=5))), id_in, (Invalid,)),
    Parser("media link", texts(LINK), LINKS.read),
    Parser("media key", texts("exports/1/trailer.mp4"), is_media_key),
    Parser("inbox address", texts(INBOX + "A" * 32), lambda text: inbox_token_in(text, INBOX)),
    Parser(
        "id token",
        st.tuples(texts(signed({"sub": "ada"})), some_of(JWK)),
        lambda given: verified_claims(given[0], signing_keys({"keys": [given[1]]})),
        (TokenRefused, UnknownKey),
    ),
    Parser("keys of a provider", some_of({"keys": [JWK]}), signing_keys),
    Parser("claims", some_of(CLAIMS), believed, (TokenRefused, IdentityRefused)),
    Parser("account and role of claims", some_of(CLAIMS), named, (IdentityRefused,)),
    Parser(
        "discovery document",
        some_of(DISCOVERY),
        lambda document: discovered("https://id.example", document),
        (ProviderUnavailable,),
    ),
    Parser("session cookie", texts("CQkJ"), opaque_token_digest),
    Parser(
        "form token",
        st.tuples(texts(form_token("CQkJ")), texts("CQkJ") | st.none()).map(
            lambda pair: tuple(each and each.encode("utf-8", "replace").decode() for each in pair)
        ),
        lambda pair: carries_token(*pair),
    ),
    Parser("form", blobs("_token=a&url=https%3A%2F%2Fa.example&events=b"), sent_form, (BadForm,)),
    Parser("accepted formats", texts("text/html,*/*;q=0.8"), accepts_html),
    Parser("shown JSON", blobs(EVENT), highlighted),
    Parser("e-mail", texts("ada@example.com"), checked_email, (Invalid,)),
    Parser("password", texts("correct horse battery"), checked_password, (Invalid,)),
    Parser(
        "conditions",
        st.dictionaries(
            st.sampled_from(CONDITIONS),
            visible("bytes=0-5", '"v1", W/"v2"', "Fri, 02 Jan 2026 00:00:00 GMT", "bytes=-9", "*"),
        ),
        lambda given: (part(given, 1024, FILE), refusal(given, FILE)),
    ),
    Parser(
        "media type and length",
        st.fixed_dictionaries(
            {"content-type": visible("application/json; charset=utf-8")},
            optional={"content-length": visible("2"), "content-encoding": visible("identity")},
        ),
        sent_body,
        (Rejected,),
    ),
    Parser("signing secret", texts(SECRET), SigningSecret.parse, (ValueError,)),
    Parser("signing secret of the kit", texts(SECRET), key_of, (ValueError,)),
    Parser(
        "signature",
        st.tuples(blobs(EVENT), headers | anything, texts(SECRET) | anything),
        lambda given: verify(*given),
        (VerificationFailed,),
    ),
    Parser("event", blobs(EVENT), read_event, (VerificationFailed,)),
    Parser(
        "pasted headers",
        texts("\r\n".join(starmap("{}: {}".format, SIGNED.items())), '{"webhook-id": "1"}'),
        read_headers,
    ),
    Parser(
        "doctor",
        st.tuples(headers | texts("webhook-id: 1"), blobs(EVENT), texts(SECRET)),
        lambda given: diagnose(*given, now=1767323045.0),
    ),
    Parser(
        "result",
        anything
        | st.fixed_dictionaries({name: st.just(LINKED[name]) | anything for name in LINKED}),
        read_result,
        (ResultFailed,),
    ),
    Parser("result address", texts(*URLS), place_of, (ResultFailed,)),
    Parser(
        "address below the base URL",
        texts("https://a.example/b/../c", "https://a.example/b/c"),
        lambda text: within("https://a.example/b", text),
        (ResultFailed,),
    ),
    Parser(
        "redirect",
        texts("https://b.example/c", "//b.example", "../c"),
        lambda text: next_url("https://a.example/b", text),
        (ResultFailed,),
    ),
    *map(setting, VARIABLES),
    *(body(each) for each in OPERATIONS if each.takes_body),
    Parser("reported entries", documents(ReportMilestones), reported, (Invalid, Rejected)),
    *map(query, OPERATIONS),
    Parser(
        "names of accounts",
        texts("external:cust_42", *IDS),
        account_reference,
        (NotFound,),
    ),
    Parser("names of members", texts("external:user_7", *IDS), member_reference, (ValueError,)),
    Parser("origins", texts("https://a.example,http://localhost:9"), parse_origins, (ValueError,)),
    Parser("origin of a URL", texts(*URLS), origin_of),
    Parser(
        "cursors of a search",
        texts("A" * 30),
        lambda text: AccountQuery(name_prefix="a", cursor=text).wanted(),
        (Invalid,),
    ),
    *map(arguments, TOOLS),
)
