"""Adds the request id to problem documents."""

from starlette.types import Message

PROBLEM = (b"content-type", b"application/problem+json")


def with_id(head: Message, message: Message, request_id: str) -> tuple[Message, Message]:
    """Head and body of a problem document, with the id as its last member.

    The id is added when the response is sent: a stored response is replayed with other ids. A body
    in several pieces, which this service never sends, is left unchanged.
    """
    if message.get("more_body"):
        return head, message
    member, body = f',"requestId":"{request_id}"}}'.encode(), message.get("body", b"")
    headers = [
        (name, b"%d" % (int(value) + len(member) - 1)) if name == b"content-length" else pair
        for pair in head["headers"]
        for name, value in (pair,)
    ]
    # The response to HEAD has no body, but the content length of the response to GET.
    body = body[:-1] + member if body else b""
    return {**head, "headers": headers}, {**message, "body": body}
