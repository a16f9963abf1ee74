"""The pages in process, on a real store, and a client that uses them without JavaScript."""

import re
from dataclasses import dataclass, field, replace
from html import unescape
from typing import Any

import httpx2
from argon2 import PasswordHasher

from cuepost.adapters.argon2_passwords import Argon2Passwords
from cuepost.application.provider_sign_in import SignInWithProvider
from cuepost.application.service import Rules, SystemPorts, assemble
from cuepost.domain.access import Caller, Role
from cuepost.domain.person import User
from cuepost.interfaces.rest.app import create_app
from cuepost.interfaces.rest.open_pages import HealthChecks
from cuepost.interfaces.web.app import create_pages
from cuepost.testing import RepeatableEntropy
from tests.application.harness import BASE_URL, OPERATOR, POLICY, Harness

TOKEN = re.compile(r'name="_token" value="([^"]+)"')
ONCE = re.compile(r'name="once" value="([^"]+)"')
PASSWORD = "correct horse battery"
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
RULES = Rules(BASE_URL, POLICY, endpoint_limit=5)
HERE = {"sec-fetch-site": "same-origin", "origin": BASE_URL}


@dataclass
class PageClient:
    """Someone with a browser: keeps cookies, sends forms with what the last page gave."""

    harness: Harness
    client: httpx2.AsyncClient
    last: str = ""
    sent: dict[str, str] = field(default_factory=lambda: dict(HERE))
    provider: SignInWithProvider | None = None

    async def get(self, path: str, **more: Any) -> httpx2.Response:
        answer = await self.client.get(path, **more)
        self.last = answer.text
        return answer

    async def post(self, path: str, **fields: Any) -> httpx2.Response:
        """With the token of the page that was last seen, unless another one is given."""
        form = {"_token": self.token()} | fields
        answer = await self.client.post(path, data=form, headers=self.sent)
        self.last = answer.text
        return answer

    async def done(self, path: str, **fields: Any) -> str:
        """A form that leads on to another page; which one."""
        answer = await self.post(path, **fields)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def token(self) -> str:
        found = TOKEN.search(self.last)
        return unescape(found[1]) if found else ""

    def once(self) -> str:
        found = ONCE.search(self.last)
        assert found is not None
        return unescape(found[1])

    async def sign_in(self, caller: Caller | None = None) -> "PageClient":
        account_id = (caller or self.harness.owner).account
        sign_in = self.harness.service.sign_in
        link = await self.harness.do(sign_in.make_link, OPERATOR, account_id)
        path = link.url.removeprefix(BASE_URL)
        await self.get(path)
        assert (await self.done(path)).startswith("/settings")
        await self.get("/settings/account")
        return self

    async def sign_in_as(self, email: str) -> "PageClient":
        await self.get("/sign-in")
        assert await self.done("/sign-in", email=email, password=PASSWORD) == "/settings"
        await self.get("/settings/account")
        return self

    def another(self) -> "PageClient":
        client = _client(self.harness, self.provider)
        return PageClient(self.harness, client, provider=self.provider)

    def with_provider(self, provider: SignInWithProvider) -> "PageClient":
        return replace(self, provider=provider).another()


async def member_of(client: PageClient, role: Role, email: str) -> User:
    """Someone who has accepted an invitation; the password is PASSWORD."""
    service = client.harness.service
    made = await client.harness.do(service.members.invite, client.harness.owner, role, None)
    token = made.url.removeprefix(f"{BASE_URL}/join/")
    return (await service.joining.accept(token, email, PASSWORD, None)).user


def opened(harness: Harness, rules: Rules = RULES) -> PageClient:
    system = SystemPorts(
        harness.clock, harness.ids, RepeatableEntropy("web"), harness.box, Argon2Passwords(CHEAP)
    )
    harness = replace(harness, service=assemble(harness.store, system, rules, harness.media))
    return PageClient(harness, _client(harness))


def _client(harness: Harness, provider: SignInWithProvider | None = None) -> httpx2.AsyncClient:
    app = create_app(
        harness.service,
        base_url=BASE_URL,
        health=HealthChecks(harness.store.check),
        further_routes=create_pages(harness.service, base_url=BASE_URL, provider=provider),
    )
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app, client=("192.0.2.7", 4711)),
        base_url=BASE_URL,
        follow_redirects=False,
    )
