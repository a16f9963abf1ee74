"""Discovery documents for programs and language models: `llms.txt`, `cuepost.http`, schemas."""

from functools import cached_property
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cuepost.domain.event_catalog import BY_NAME, CATALOG, EventType
from cuepost.interfaces.rest.answers import COMMON_HEADERS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMAS = "/schemas"

_LLMS = """\
# cuepost

> cuepost sends signed webhooks when a video project reaches a milestone: ready, completed, failed
> or cancelled. Receivers are public HTTPS URLs on port 443, registered as endpoints.

Rules for code that uses it:

- Every API call needs `Authorization: Bearer <API_KEY>`; a key has scopes. Errors are
  `application/problem+json` with a stable `code`. Every POST accepts an `Idempotency-Key`.
- A delivery is a POST in the Standard Webhooks convention, with the headers `webhook-id`,
  `webhook-timestamp` and `webhook-signature`. The signature is `v1,` and the base64 HMAC-SHA256 of
  `{{id}}.{{timestamp}}.{{body}}`; the key is the secret without `whsec_`, base64-decoded. During a
  rotation there are two signatures, separated by a space; accept either.
- Verify the raw bytes of the body before parsing them, compare in constant time, and reject a
  timestamp that is more than five minutes off.
- Delivery is at least once and unordered: store every `webhook-id`, handle each once, respond with
  2xx within 15 seconds, and process the event afterwards. A failed delivery is tried three times,
  about one and five minutes apart, and can be retried manually with the same id.
- Redirects are not followed. For a receiver on localhost use `cuepost listen`.
- Events contain metadata, never media. Get the files of a finished export from `resultUrl`, with an
  API key.

## Reference

- [API]({base_url}/docs): every call, as a readable page
- [OpenAPI 3.1]({base_url}/openapi.json): every call and every webhook, machine-readable
- [cuepost.http]({base_url}/cuepost.http): every call, to send from an editor

## Events

{events}

## Agents

- [MCP]({base_url}/mcp): the same functions as tools, over streamable HTTP with the same keys; start
  with `webhooks_explain`, which explains why an event did not arrive
"""


def schema_of_event(entry: EventType, base_url: str) -> dict[str, Any]:
    return {"$schema": DIALECT, "$id": f"{base_url}{SCHEMAS}/{entry.name}.json", **entry.schema()}


class DiscoveryPages:
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
        # Imported late, as the OpenAPI document in `app.py`.
        from cuepost.interfaces.rest.openapi.http_file import http_file  # noqa: PLC0415  # see above

        return _open(http_file(self._base_url).encode(), "text/plain; charset=utf-8")

    async def schemas(self, request: Request) -> Response:
        """The URL of the schema of each event."""
        places = {entry.name: f"{self._base_url}{SCHEMAS}/{entry.name}.json" for entry in CATALOG}
        return _open(msgspec.json.encode(places), "application/json")

    async def schema(self, request: Request) -> Response:
        entry = BY_NAME.get(request.path_params["name"])
        if entry is None:
            return _open(
                b"There is no event type with this name.\n", "text/plain; charset=utf-8", 404
            )
        schema = msgspec.json.encode(schema_of_event(entry, self._base_url))
        return _open(schema, "application/schema+json")


def _open(content: bytes, media_type: str, status: int = 200) -> Response:
    headers = {name.decode(): value.decode() for name, value in COMMON_HEADERS}
    return Response(content, status, {**headers, "content-type": media_type})
