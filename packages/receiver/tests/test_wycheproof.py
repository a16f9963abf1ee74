"""The HMAC below the secret parser, against the vectors of Project Wycheproof."""

import hmac
import json
from pathlib import Path
from typing import Any

import pytest

from cuepost_receiver.signing_key import hmac_sha256

GROUPS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("vectors").joinpath("hmac_sha256_test.json").read_text()
)["testGroups"]
VECTORS = [(group["tagSize"] // 8, test) for group in GROUPS for test in group["tests"]]


def test_all_vectors_are_there() -> None:
    assert len(VECTORS) == 174


@pytest.mark.parametrize(("size", "vector"), VECTORS, ids=lambda value: str(value)[:30])
def test_a_tag_is_right_exactly_where_the_vector_says_so(size: int, vector: dict[str, Any]) -> None:
    made = hmac_sha256(bytes.fromhex(vector["key"]), bytes.fromhex(vector["msg"]))[:size]
    same = hmac.compare_digest(made, bytes.fromhex(vector["tag"]))
    assert same is (vector["result"] == "valid")
