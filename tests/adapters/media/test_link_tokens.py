"""Tokens of links: what was signed is read again, and nothing else."""

from dataclasses import replace
from datetime import timedelta
from string import ascii_letters, digits
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from cuepost.adapters.media.link_tokens import LinkTokens
from cuepost.ports.media import Grant
from cuepost.testing import START

OLD, NEW = bytes(32), bytes([1]) * 32
GRANT = Grant(UUID(int=1), UUID(int=2), b"f" * 16, START + timedelta(minutes=15))
ALPHABET = ascii_letters + digits + "-_"


def test_a_token_tells_what_was_granted() -> None:
    token = LinkTokens([NEW]).write(GRANT)
    assert len(token) == 116
    assert set(token) <= set(ALPHABET)
    assert LinkTokens([NEW]).read(token) == GRANT


def test_any_other_character_at_any_place_makes_it_worthless() -> None:
    tokens = LinkTokens([NEW])
    token = tokens.write(GRANT)
    forged = [
        token[:place] + other + token[place + 1 :]
        for place in range(len(token))
        for other in f"{ALPHABET}=+/ é\n"
        if other != token[place]
    ]
    assert len(forged) == 116 * 69
    assert [each for each in forged if tokens.read(each)] == []


def test_a_token_that_is_cut_lengthened_or_put_together_is_worthless() -> None:
    tokens = LinkTokens([NEW])
    mine = tokens.write(GRANT)
    theirs = tokens.write(replace(GRANT, fingerprint=b"g" * 16))
    pieces = [mine[:place] + theirs[place:] for place in range(1, 116)]
    mixed = [each for each in pieces if each not in (mine, theirs)]
    assert mixed
    for each in ("", mine[:-1], mine[1:], mine + "A", mine + "=", f" {mine}", *mixed):
        assert tokens.read(each) is None


def test_through_a_rotation_old_links_hold_and_the_new_key_signs() -> None:
    before = LinkTokens([OLD]).write(GRANT)
    during = LinkTokens([NEW, OLD])
    assert during.read(before) == GRANT
    assert during.write(GRANT) == LinkTokens([NEW]).write(GRANT)
    assert LinkTokens([NEW]).read(before) is None


@given(st.text())
def test_whatever_is_read_never_fails(text: str) -> None:
    assert LinkTokens([NEW]).read(text) is None


@given(
    st.uuids(),
    st.uuids(),
    st.binary(min_size=16, max_size=16),
    st.timedeltas(timedelta(0), timedelta(days=365_000)),
)
def test_every_grant_survives_the_way(
    account: UUID, project: UUID, fingerprint: bytes, life: timedelta
) -> None:
    end = START + life - timedelta(microseconds=life.microseconds % 1000)
    grant = Grant(account, project, fingerprint, end)
    tokens = LinkTokens([NEW])
    assert tokens.read(tokens.write(grant)) == grant
