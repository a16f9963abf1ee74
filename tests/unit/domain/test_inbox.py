"""The address of a test inbox: only the prefix and a whole token name one."""

from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.inbox import TOKEN_BYTES, compose_token, inbox_token_in
from cuepost.domain.receiver_url import parse_receiver_url

PREFIX = "https://cuepost.example.com/inbox/"
TOKEN = compose_token(bytes(range(TOKEN_BYTES)))


def test_a_token_is_found_behind_its_prefix() -> None:
    assert inbox_token_in(PREFIX + TOKEN, PREFIX) == TOKEN


def test_nothing_else_names_an_inbox() -> None:
    others = (TOKEN, PREFIX, PREFIX + TOKEN[1:], PREFIX + TOKEN + "/", "https://x.example/" + TOKEN)
    assert [inbox_token_in(text, PREFIX) for text in others] == [None] * len(others)


def test_a_receiver_url_with_that_prefix_leads_into_the_inbox() -> None:
    url = parse_receiver_url(PREFIX + TOKEN, EgressPolicy(inbox_prefix=PREFIX))
    assert (url.text, url.inbox, url.host) == (PREFIX + TOKEN, TOKEN, "")
