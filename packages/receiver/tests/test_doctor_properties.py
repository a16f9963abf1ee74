"""The doctor never raises, never repeats a secret, and calls valid what `verify` accepts."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cuepost_receiver import VerificationFailed, verify
from cuepost_receiver.doctor import diagnose
from cuepost_receiver.doctor.diagnosis import MOST_SECRETS
from packages.receiver.tests.signing import (
    EVENT_ID,
    NOW,
    OTHER_SECRET,
    SECRET,
    Delivery,
)

GOOD = Delivery()


texts = st.text() | st.sampled_from([EVENT_ID, str(NOW), GOOD.signature, SECRET, OTHER_SECRET, ""])

bodies = st.binary() | st.text() | st.sampled_from([GOOD.body, GOOD.body + b"\n", b"{", b'"\\u12"'])

pairs = st.lists(
    st.tuples(
        st.sampled_from(["webhook-id", "webhook-timestamp", "webhook-signature"]) | st.text(), texts
    ),
    max_size=4,
)

tampered = st.fixed_dictionaries(dict.fromkeys(GOOD.headers, texts))


@given(
    pairs | tampered | st.just(GOOD.headers) | st.text(),
    bodies,
    texts | st.lists(texts, max_size=MOST_SECRETS),
)
def test_valid_is_said_exactly_of_what_verify_accepts(
    headers: Any, body: bytes | str, secrets: Any
) -> None:
    found = diagnose(headers, body, secrets, now=NOW)
    raw = body.encode(errors="surrogatepass") if isinstance(body, str) else body
    given_headers = [] if isinstance(headers, str) else headers
    try:
        verify(raw, given_headers, secrets, now=NOW)
        accepted = True
    except VerificationFailed:
        accepted = False
    assert found.is_valid is accepted or isinstance(headers, str)
    for secret in [secrets] if isinstance(secrets, str) else secrets:
        assert len(secret) < 20 or secret not in repr(found)
