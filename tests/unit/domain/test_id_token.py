"""Which claims of an id token are believed."""

from datetime import UTC, datetime
from typing import Any

import pytest

from cuepost.domain.id_token import ExpectedToken, TokenRefused, require_believable

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
SECONDS = NOW.timestamp()
EXPECTED = ExpectedToken("https://id.example.com", "cuepost", "n1")
CLAIMS = {
    "iss": "https://id.example.com",
    "aud": "cuepost",
    "sub": "ada",
    "exp": SECONDS + 300,
    "iat": SECONDS,
    "nonce": "n1",
}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"aud": ["cuepost"]},
        {"azp": "cuepost"},
        {"aud": ["other", "cuepost"], "azp": "cuepost"},
        {"exp": SECONDS - 59},
        {"iat": SECONDS + 60},
        {"nbf": SECONDS + 60},
        {"sub": "x" * 255},
    ],
)
def test_claims_of_this_sign_in_are_believed(changed: dict[str, Any]) -> None:
    require_believable(CLAIMS | changed, EXPECTED, NOW)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"iss": "https://id.example.com/"}, "the issuer is another one"),
        ({"iss": None}, "the issuer is another one"),
        ({"aud": "other"}, "the audience is another client"),
        ({"aud": []}, "the audience is another client"),
        ({"aud": None}, "the audience is another client"),
        ({"aud": ["cuepost", "other"]}, "it was issued to another client"),
        ({"azp": "other"}, "it was issued to another client"),
        ({"exp": SECONDS - 60}, "it has expired"),
        ({"exp": "soon"}, "exp is not a number"),
        ({"exp": True}, "exp is not a number"),
        ({"exp": None}, "exp is not a number"),
        ({"iat": None}, "iat is not a number"),
        ({"iat": SECONDS + 61}, "it was issued in the future"),
        ({"nbf": SECONDS + 61}, "it is not valid yet"),
        ({"nonce": "n2"}, "the nonce is not the one of this sign-in"),
        ({"nonce": None}, "the nonce is not the one of this sign-in"),
        ({"sub": ""}, "it names no subject"),
        ({"sub": 7}, "it names no subject"),
        ({"sub": "x" * 256}, "it names no subject"),
    ],
)
def test_other_claims_are_refused_with_the_reason(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(TokenRefused) as caught:
        require_believable(CLAIMS | changed, EXPECTED, NOW)
    assert str(caught.value) == why
