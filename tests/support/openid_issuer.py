"""A small OpenID issuer on loopback that signs with real keys, and can forge on demand."""

import hashlib
import json
import threading
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from cuepost.ports.system import Clock

CLIENT_ID, CLIENT_SECRET = "cuepost", "a secret & more+"
RSA_KEY = rsa.generate_private_key(65_537, 2_048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
UNKNOWN_KEY = rsa.generate_private_key(65_537, 2_048)


def public_jwk(key: Any, kid: str | None) -> dict[str, Any]:
    form: Any = OKPAlgorithm
    if isinstance(key, rsa.RSAPrivateKey):
        form = RSAAlgorithm
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        form = ECAlgorithm
    found: dict[str, Any] = form.to_jwk(key.public_key(), as_dict=True)
    return found | ({"kid": kid} if kid else {})


def signed(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, RSA_KEY, "RS256", {"kid": "rsa"})


@dataclass
class Grant:
    nonce: str
    challenge: str
    redirect_uri: str
    claims: dict[str, Any]


@dataclass
class LocalIssuer:
    """What a test changes is used from the next request on."""

    clock: Clock
    encode: Callable[[dict[str, Any]], str] = signed
    keys: list[dict[str, Any]] = field(default_factory=lambda: [public_jwk(RSA_KEY, "rsa")])
    discovery: dict[str, Any] = field(default_factory=dict)
    responses: dict[str, Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    grants: dict[str, Grant] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def document(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
        } | self.discovery

    def consent(self, url: str, **claims: Any) -> dict[str, str]:
        """What a person does at the issuer; the parameters of the callback."""
        query = dict(parse_qsl(urlsplit(url).query))
        assert url.startswith(f"{self.url}/authorize?")
        assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
        assert query["client_id"] == CLIENT_ID
        code = f"code-{len(self.grants)}"
        self.grants[code] = Grant(
            query["nonce"], query["code_challenge"], query["redirect_uri"], claims
        )
        return {"code": code, "state": query["state"]}

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        pair = b64decode(authorization.removeprefix("Basic ")).decode()
        user, _, word = pair.partition(":")
        if not authorization:
            user, word = form.get("client_id", ""), form.get("client_secret", "")
        else:
            user, word = unquote_plus(user), unquote_plus(word)
        if (user, word) != (CLIENT_ID, CLIENT_SECRET):
            return 401, {"error": "invalid_client"}
        grant = self.grants.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = urlsafe_b64encode(digest).decode().rstrip("=")
        if grant is None or challenge != grant.challenge:
            return 400, {"error": "invalid_grant"}
        if form["redirect_uri"] != grant.redirect_uri:
            return 400, {"error": "invalid_grant"}
        now = int(self.clock.now().timestamp())
        claims = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": grant.nonce,
        }
        kept = {name: value for name, value in (claims | grant.claims).items() if value is not None}
        return 200, {"access_token": "a", "token_type": "Bearer", "id_token": self.encode(kept)}


def _handler(issuer: LocalIssuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            documents = {
                "/.well-known/openid-configuration": issuer.document,
                "/jwks": lambda: {"keys": issuer.keys},
            }
            self._answer(200, documents[self.path])

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            status, answer = issuer.token(form, self.headers.get("authorization", ""))
            self._answer(status, lambda: answer)

        def _answer(self, status: int, content: Callable[[], dict[str, Any]]) -> None:
            issuer.seen.append(self.path)
            if self.path in issuer.responses:
                issuer.responses[self.path](self)
                return
            body = json.dumps(content()).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name
            pass

    return Handler
