"""Queries, paths and keys that are none: refused or not found, never a fault of the service."""

import pytest

from tests.interfaces.rest.client import Api, faults, problem


@pytest.mark.parametrize(
    ("query", "field", "code"),
    [
        ("limit=0", "limit", "too_small"),
        ("limit=101", "limit", "too_large"),
        ("limit=-1", "limit", "wrong_type"),
        ("limit=ten", "limit", "wrong_type"),
        ("limit=1.5", "limit", "wrong_type"),
        ("limit=%D9%A5", "limit", "wrong_type"),
        ("limit=", "limit", "wrong_type"),
        ("limit=99999999999999999999", "limit", "wrong_type"),
        ("limit=1&limit=2", "limit", "duplicate_parameter"),
        ("cursor=", "cursor", "invalid_cursor"),
        ("cursor=nonsense", "cursor", "invalid_cursor"),
        ("cursor=%00", "cursor", "invalid_cursor"),
        ("cursor=%E2%82%AC", "cursor", "invalid_cursor"),
        ("cursor=AZt8qY8ucACAAAAAAAAAAh", "cursor", "invalid_cursor"),
        ("cursor=AZt8qY8ucACAAAAAAAAAAg==", "cursor", "invalid_cursor"),
        ("status=", "status", "invalid_value"),
        ("status=null", "status", "invalid_value"),
        ("status=PENDING", "status", "invalid_value"),
        ("type=%00", "type", "unknown_event_type"),
        ("projectId=x", "projectId", "invalid_id"),
        ("eventId=%00", "eventId", "invalid_id"),
        ("since=yesterday", "since", "invalid_time"),
        ("since=1767225600", "since", "invalid_time"),
        ("since=2026-01-01", "since", "invalid_time"),
        ("since=2026-01-01T00:00:00", "since", "invalid_time"),
        ("since=2026-01-01T00:00:00+01:00", "since", "invalid_time"),
        ("until=1969-12-31T23:59:59Z", "until", "time_out_of_range"),
        ("until=9999-12-31T23:59:59-23:59", "until", "time_out_of_range"),
        ("%FF=1", "query", "malformed_query"),
        ("status=%FF", "query", "malformed_query"),
        ("a=1&" * 60, "query", "malformed_query"),
    ],
)
async def test_a_query_that_is_not_valid_is_named(
    sqlite_api: Api, query: str, field: str, code: str
) -> None:
    answer = await sqlite_api.call("GET", f"/v1/deliveries?{query}")
    assert faults(answer) == [(field, code)]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/",
        "/v1/webhooks/",
        "/v2/webhooks",
        "/V1/webhooks",
        "/v1/webhooks//deliveries",
        "/v1/webhooks/%2e%2e/projects",
        "/v1/webhooks/a%2Fb",
        "/docs/",
        "/%00",
        "/v1/webhooks/x/deliveries/y/z",
    ],
)
async def test_an_unknown_address_is_not_found_with_or_without_a_key(
    sqlite_api: Api, path: str
) -> None:
    for key in ("", None):
        assert problem(await sqlite_api.call("GET", path, key=key)) == (404, "not_found")


@pytest.mark.parametrize(
    "identifier",
    ["x", "%00", "0198c0de5a3b7d219c4e3f6a5b7c8d90", "{0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90}",
     "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d9", "urn:uuid:0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90",
     "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90%0A", "٠198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90"],
)  # fmt: skip
async def test_what_is_no_id_is_not_found(sqlite_api: Api, identifier: str) -> None:
    answer = await sqlite_api.call("GET", f"/v1/webhooks/{identifier}")
    assert problem(answer) == (404, "not_found")


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Basic Og==", "bearer", "Bearer a b", "cpk_x", "Bearer cpk_",
     "Bearer \xff", "Bearer cpk_" + "0" * 32 + "a" * 43],
)  # fmt: skip
async def test_a_key_that_is_none_is_refused(sqlite_api: Api, authorization: str) -> None:
    answer = await sqlite_api.client.get(
        "/v1/webhooks", headers=[(b"authorization", authorization.encode("latin-1"))]
    )
    assert problem(answer) == (401, "unauthenticated")


async def test_the_scheme_of_the_key_may_be_written_in_any_case(sqlite_api: Api) -> None:
    for scheme in ("bearer", "BEARER  "):
        answer = await sqlite_api.client.get(
            "/v1/webhooks", headers={"Authorization": f"{scheme} {sqlite_api.owner}"}
        )
        assert answer.status_code == 200
