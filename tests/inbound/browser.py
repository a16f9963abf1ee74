"""Someone at the sign-in page, from an address of their own, without a browser."""

import re
import ssl
from collections.abc import Mapping
from html import unescape
from typing import Any

import httpx2

TOKEN = re.compile(r'name="_token" value="([^"]+)"')


class Person:
    def __init__(
        self,
        base_url: str,
        address: str = "127.0.0.1",
        *,
        trust: ssl.SSLContext | bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        transport = httpx2.AsyncHTTPTransport(verify=trust, local_address=address)
        self.client = httpx2.AsyncClient(
            base_url=base_url, transport=transport, headers=dict(headers or {}), timeout=60
        )
        self._token = ""

    async def __aenter__(self) -> "Person":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()

    async def see(self, path: str) -> httpx2.Response:
        answer = await self.client.get(path)
        found = TOKEN.search(answer.text)
        if found is not None:
            self._token = unescape(found[1])
        return answer

    async def send(self, path: str, **fields: Any) -> httpx2.Response:
        return await self.client.post(path, data={"_token": self._token, **fields})

    async def guess(self, email: str, password: str) -> int:
        """The status of the answer; the page has to be seen before."""
        return (await self.send("/sign-in", email=email, password=password)).status_code

    async def choose_password(self, link: str, email: str, password: str) -> None:
        await self.see(link)
        assert (await self.send(link)).status_code == 303
        await self.see("/settings/account")
        answer = await self.send("/settings/account", email=email, password=password)
        assert answer.headers["location"].endswith("note=credentials"), answer.text
