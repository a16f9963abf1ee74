"""The box for secrets at rest: sealed for one context, opened by any of the master keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuepost.adapters.secret_box import AesGcmBox
from cuepost.ports.system import CannotOpen
from cuepost.testing import RepeatableEntropy

OLD, NEW = bytes(32), bytes(range(32))
SECRET = b"canary-signing-key"


def box(*master_keys: bytes) -> AesGcmBox:
    return AesGcmBox(master_keys, RepeatableEntropy())


@given(st.binary(), st.binary())
def test_what_was_sealed_is_opened_in_its_context(plain: bytes, context: bytes) -> None:
    sealed = box(NEW).seal(plain, context)
    assert box(NEW).open(sealed, context) == plain


def test_a_sealed_value_shows_nothing_and_differs_each_time() -> None:
    one = box(NEW)
    sealed, again = one.seal(SECRET, b"endpoint"), one.seal(SECRET, b"endpoint")
    assert sealed != again
    assert SECRET not in sealed + again


def test_a_value_cannot_be_moved_to_another_context() -> None:
    sealed = box(NEW).seal(SECRET, b"endpoint one")
    with pytest.raises(CannotOpen):
        box(NEW).open(sealed, b"endpoint two")


@pytest.mark.parametrize("place", [4, 15, 16, -1])
def test_a_changed_value_is_refused(place: int) -> None:
    sealed = bytearray(box(NEW).seal(SECRET, b""))
    sealed[place] ^= 1
    with pytest.raises(CannotOpen):
        box(NEW).open(bytes(sealed), b"")


def test_after_a_key_rotation_the_first_key_seals_and_every_key_opens() -> None:
    rotated = box(NEW, OLD)
    assert rotated.open(box(OLD).seal(SECRET, b""), b"") == SECRET
    assert box(NEW).open(rotated.seal(SECRET, b""), b"") == SECRET


def test_without_its_master_key_a_value_stays_closed_and_the_message_says_where_to_look() -> None:
    with pytest.raises(CannotOpen, match="CUEPOST_MASTER_KEY"):
        box(NEW).open(box(OLD).seal(SECRET, b""), b"")


@pytest.mark.parametrize("length", [0, 3, 4, 10, 16, 20])
def test_a_value_that_breaks_off_is_refused(length: int) -> None:
    sealed = box(NEW).seal(SECRET, b"")
    with pytest.raises(CannotOpen):
        box(NEW).open(sealed[:length], b"")


def test_the_box_shows_none_of_its_keys() -> None:
    assert NEW.hex() not in repr(box(NEW)) + repr(vars(box(NEW)))
    assert repr(NEW) not in repr(vars(box(NEW)))
