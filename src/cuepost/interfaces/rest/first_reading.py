"""What programs and language models read first: `llms.txt`, and the JSON schema of each event."""

from functools import cached_property
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cuepost.domain.event_catalog import BY_NAME, CATALOG, EventType
from cuepost.interfaces.rest.answers import STANDING_HEADERS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMAS = "/schemas"

_LLMS = """\
# cuepost

> cuepost sends signed webhooks when a video project reaches a milestone: ready, completed, failed
> or cancelled. Receivers are public HTTPS addresses on port 443, registered as endpoints.

What has to be right in code that uses it:

- Every call of the API takes `Authorization: Bearer <API_KEY>`; a key has scopes. Problems are
  `application/problem+json` with a stable `code`. Every POST takes an `Idempotency-Key`.
- A delivery is a POST in the Standard Webhooks convention, with the headers `webhook-id`,
  `webhook-timestamp` and `webhook-signature`. The signature is `v1,` and the base64 HMAC-SHA256 of
  `{{id}}.{{timestamp}}.{{body}}`, under the base64-decoded secret without its `whsec_`. During a
  rotation there are two, one space between; either may fit.
- Verify the raw bytes of the body before they are parsed, compare in constant time, and refuse a
  timestamp that is more than five minutes off.
- Delivery is at least once and in no order: keep every `webhook-id`, handle each once, answer 2xx
  within 15 seconds, and work afterwards. What is not answered so is tried three times, about one
  and five minutes apart, and can be sent again by hand with the same id.
- Redirects are not followed. A receiver on localhost gets its events by `cuepost listen`.
- Events carry metadata, never media. The files of a finished export are fetched at `resultUrl`,
  with a key.

## Reference

- [API]({base_url}/docs): every call, for people
- [OpenAPI 3.1]({base_url}/openapi.json): every call and every webhook, for programs
- [cuepost.http]({base_url}/cuepost.http): every call, to be sent from an editor

## Events

{events}

## Agents

- [MCP]({base_url}/mcp): the same as tools, over streamable HTTP with the same keys; begin with
  `webhooks_explain`, which answers why something did not arrive
"""


def schema_of_event(entry: EventType, base_url: str) -> dict[str, Any]:
    return {"$schema": DIALECT, "$id": f"{base_url}{SCHEMAS}/{entry.name}.json", **entry.schema()}


class FirstReading:
    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    def routes(self) -> list[Route]:
        return [
            Route("/llms.txt", self.llms),
            Route("/cuepost.http", self.calls),
            Route(SCHEMAS, self.schemas),
            Route(f"{SCHEMAS}/", self.schemas),
            Route(f"{SCHEMAS}/{{name}}.json", self.schema),
        ]

    @cached_property
    def _llms_text(self) -> str:
        events = "\n".join(
            f"- [{entry.name}]({self._base_url}{SCHEMAS}/{entry.name}.json): {entry.meaning}"
            for entry in CATALOG
        )
        return _LLMS.format(base_url=self._base_url, events=events)

    async def llms(self, request: Request) -> Response:
        return _open(self._llms_text.encode(), "text/markdown; charset=utf-8")

    async def calls(self, request: Request) -> Response:
        # Loaded here, as the OpenAPI document in `app.py`.
        from cuepost.interfaces.rest.openapi.http_file import http_file  # noqa: PLC0415  # see above

        return _open(http_file(self._base_url).encode(), "text/plain; charset=utf-8")

    async def schemas(self, request: Request) -> Response:
        """Where the schema of each event is."""
        places = {entry.name: f"{self._base_url}{SCHEMAS}/{entry.name}.json" for entry in CATALOG}
        return _open(msgspec.json.encode(places), "application/json")

    async def schema(self, request: Request) -> Response:
        entry = BY_NAME.get(request.path_params["name"])
        if entry is None:
            return _open(b"There is no event of this name.\n", "text/plain; charset=utf-8", 404)
        schema = msgspec.json.encode(schema_of_event(entry, self._base_url))
        return _open(schema, "application/schema+json")


def _open(content: bytes, media_type: str, status: int = 200) -> Response:
    headers = {name.decode(): value.decode() for name, value in STANDING_HEADERS}
    return Response(content, status, {**headers, "content-type": media_type})
