"""A tiny product whose customers get webhooks: accounts, the portal, milestones and a receiver.

`run.py` starts it together with cuepost. What is kept in memory here is in your database.
"""

import json
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs
from urllib.request import Request as Call
from urllib.request import urlopen

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from cuepost_receiver import Event, Inbox, SqliteStore
from cuepost_receiver.asgi import AsgiInbox

HOST, CUEPOST = os.environ["HOST_URL"], os.environ["CUEPOST_URL"]
OPERATOR_KEY, SERVICE_KEY = os.environ["CUEPOST_OPERATOR_KEY"], os.environ["CUEPOST_SERVICE_KEY"]
COOKIE = "film-studio"


@dataclass
class Customer:
    id: str
    name: str
    account_key: str = ""
    signing_secrets: list[str] = field(default_factory=list)


customers: dict[str, Customer] = {}
sessions: dict[str, Customer] = {}
received: list[str] = []


def cuepost(key: str, method: str, path: str, body: Any = None, once: str = "") -> Any:
    """`once` makes a repetition harmless, for example after a lost answer."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    if once:
        headers["Idempotency-Key"] = once
    content = None if body is None else json.dumps(body).encode()
    with urlopen(Call(CUEPOST + path, content, headers, method=method), timeout=10) as answer:
        return json.loads(answer.read() or b"null")


def provision(customer: Customer) -> None:
    """At sign-up: an account with our own id of the customer, and a key for our server."""
    account = {"name": customer.name, "externalId": customer.id, "webhooksAccess": "open"}
    cuepost(OPERATOR_KEY, "POST", "/v1/accounts", account, once=f"sign-up-{customer.id}")
    path = f"/v1/accounts/external:{customer.id}/keys"
    key = {"name": "Film Studio", "scopes": ["projects:read", "projects:write"]}
    customer.account_key = cuepost(OPERATOR_KEY, "POST", path, key)["token"]


def portal_url(customer: Customer) -> str:
    """A new link each time: it works once."""
    link = {
        "member": f"external:user-of-{customer.id}",
        "role": "developer",
        "returnUrl": f"{HOST}/",
        "theme": {"accent": "#0b6e4f", "logoUrl": f"{HOST}/logo.svg", "mode": "light"},
    }
    path = f"/v1/accounts/external:{customer.id}/portal-links"
    return str(cuepost(OPERATOR_KEY, "POST", path, link)["url"])


def render_video(customer: Customer) -> None:
    """What a pipeline does: a project of the customer, and its milestones with the service key."""
    project = cuepost(customer.account_key, "POST", "/v1/projects", {"name": "Holiday film"})
    milestones = [
        {"reportId": f"{project['id']}-{status}", "projectId": project["id"], "status": status}
        for status in ("processing", "exporting", "completed")
    ]
    cuepost(SERVICE_KEY, "POST", "/v1/milestones", {"milestones": milestones})


def handle(event: Event) -> None:
    """Runs at least once after the delivery was acknowledged; it has to be idempotent."""
    received.append(f"{event.type} of {event.project_id}")


def known_secrets() -> list[str]:
    return [secret for customer in customers.values() for secret in customer.signing_secrets]


inbox = Inbox(
    SqliteStore(os.environ["RECEIVER_INBOX"]),
    secrets=known_secrets,
    handler=handle,
    on_test=lambda event: received.append(f"{event.type}, a test"),
)
hook = AsgiInbox(inbox)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with hook.lifespan(app):
        yield


app = FastAPI(lifespan=lifespan)
app.router.routes.append(Route("/hooks", hook))


def page(body: str) -> HTMLResponse:
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Film Studio</title>'
    return HTMLResponse(f"{head}<body><main><h1>Film Studio</h1>{body}</main></body></html>")


def button(path: str, label: str) -> str:
    return f'<form method="post" action="{path}"><button>{label}</button></form>'


def signed_in(request: Request) -> Customer | None:
    return sessions.get(request.cookies.get(COOKIE, ""))


async def form_of(request: Request) -> dict[str, str]:
    return {name: texts[0] for name, texts in parse_qs((await request.body()).decode()).items()}


def home() -> Response:
    return RedirectResponse("/", status_code=303)


@app.get("/")
def show_home(request: Request) -> Response:
    customer = signed_in(request)
    if customer is None:
        return page(
            '<form method="post" action="/sign-up"><label>Company '
            '<input name="name" required></label> <button>Sign up</button></form>'
        )
    events = "".join(f"<li>{escape(each)}</li>" for each in received)
    return page(
        f"<p>Signed in as {escape(customer.name)}</p>"
        + button("/portal", "Webhook settings")
        + '<p><a href="/embedded">Webhook settings on this page</a></p>'
        + f"<p>Our receiver: <code>{escape(os.environ['RECEIVER_URL'])}</code></p>"
        + '<form method="post" action="/secret"><label>Signing secret '
        '<input name="secret" required></label> <button>Save the secret</button></form>'
        + button("/videos", "Render a video")
        + f"<h2>Webhooks received</h2><ul>{events}</ul>"
        + button("/sign-out", "Sign out")
    )


@app.post("/sign-up")
async def sign_up(request: Request) -> Response:
    name = (await form_of(request)).get("name", "").strip() or "A company"
    customer = Customer(f"cust_{len(customers) + 1}", name)
    provision(customer)
    customers[customer.id] = customer
    token = secrets.token_urlsafe()
    sessions[token] = customer
    response = home()
    response.set_cookie(COOKIE, token, httponly=True, samesite="lax")
    return response


@app.post("/portal")
def open_portal(request: Request) -> Response:
    customer = signed_in(request)
    return home() if customer is None else RedirectResponse(portal_url(customer), status_code=303)


@app.get("/embedded")
def show_embedded(request: Request) -> Response:
    customer = signed_in(request)
    if customer is None:
        return home()
    source = escape(portal_url(customer))
    return page(f'<iframe src="{source}" title="Webhook settings" width="1100" height="800">')


@app.post("/secret")
async def save_secret(request: Request) -> Response:
    customer = signed_in(request)
    if customer is not None:
        customer.signing_secrets.append((await form_of(request)).get("secret", "").strip())
    return home()


@app.post("/videos")
def make_video(request: Request) -> Response:
    customer = signed_in(request)
    if customer is not None:
        render_video(customer)
    return home()


@app.post("/sign-out")
def sign_out(request: Request) -> Response:
    """Ends what our user has open at cuepost as well."""
    customer = sessions.pop(request.cookies.get(COOKIE, ""), None)
    if customer is not None:
        member = f"member=external:user-of-{customer.id}"
        path = f"/v1/accounts/external:{customer.id}/portal-sessions?{member}"
        try:
            cuepost(OPERATOR_KEY, "DELETE", path)
        except HTTPError as error:
            if error.code != 404:  # The user has never opened the portal.
                raise
    return home()


@app.get("/logo.svg")
def show_logo() -> Response:
    logo = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="28">'
        '<rect width="120" height="28" rx="6" fill="#0b6e4f"/></svg>'
    )
    return Response(logo, media_type="image/svg+xml")
