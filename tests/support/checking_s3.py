"""A moto server that also checks what moto does not: presigned signatures and their expiry.

Signatures are computed once more by botocore, which shares no code with what makes them. Run as
`python -m tests.support.checking_s3`; it prints its port and ends with its standard input.
"""

import hmac
import sys
import threading
import time
from calendar import timegm
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs

from botocore.auth import S3SigV4QueryAuth  # type: ignore[import-untyped]  # has no types
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]  # has no types
from botocore.credentials import Credentials  # type: ignore[import-untyped]  # has no types
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

ACCESS_KEY, SECRET_KEY, REGION = "AKIDCUEPOST", "a secret of no one", "eu-central-1"
REFUSED = b"<Error><Code>%s</Code></Error>"
Start = Callable[[str, list[tuple[str, str]]], Any]


class Checking:
    def __init__(self, app: Callable[[dict[str, Any], Start], Iterable[bytes]]) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        query = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
        fault = None if "HTTP_AUTHORIZATION" in environ else _fault(environ, query)
        if fault is None:
            return self._app(environ, start)
        start("403 Forbidden", [("content-type", "application/xml")])
        return [REFUSED % fault]


def _fault(environ: dict[str, Any], query: dict[str, list[str]]) -> bytes | None:
    try:
        [signature] = query["X-Amz-Signature"]
        [date], [life] = query["X-Amz-Date"], query["X-Amz-Expires"]
        begins = timegm(time.strptime(date, "%Y%m%dT%H%M%SZ"))
        expected = _signature(environ, date, int(life))
    except (KeyError, ValueError):
        return b"AccessDenied"
    if not hmac.compare_digest(signature.encode(), expected.encode()):
        return b"SignatureDoesNotMatch"
    return None if begins <= time.time() < begins + int(life) else b"ExpiredToken"


def _signature(environ: dict[str, Any], date: str, life: int) -> str:
    signed = [
        each for each in environ["QUERY_STRING"].split("&") if not each.startswith("X-Amz-Signat")
    ]
    url = f"http://{environ['HTTP_HOST']}{environ['RAW_URI'].partition('?')[0]}"
    request = AWSRequest(environ["REQUEST_METHOD"], f"{url}?{'&'.join(signed)}")
    request.context["timestamp"] = date
    auth = S3SigV4QueryAuth(Credentials(ACCESS_KEY, SECRET_KEY), "s3", REGION, life)
    text = auth.string_to_sign(request, auth.canonical_request(request))
    found: str = auth.signature(text, request)
    return found


def main() -> None:
    app = Checking(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
