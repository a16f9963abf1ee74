"""The id of a request in a problem document that answers it."""

from starlette.types import Message

PROBLEM = (b"content-type", b"application/problem+json")


def with_id(head: Message, message: Message, request_id: str) -> tuple[Message, Message]:
    """Head and body of a problem document, with the id as its last member.

    It is added on the way out: what is kept for a repetition has none, because each answer has its
    own. A document that comes in pieces, which none of ours does, is left as it is.
    """
    if message.get("more_body"):
        return head, message
    member, body = f',"requestId":"{request_id}"}}'.encode(), message.get("body", b"")
    headers = [
        (name, b"%d" % (int(value) + len(member) - 1)) if name == b"content-length" else pair
        for pair in head["headers"]
        for name, value in (pair,)
    ]
    # The answer to HEAD has no body, but the length of the one that GET would get.
    body = body[:-1] + member if body else b""
    return {**head, "headers": headers}, {**message, "body": body}
