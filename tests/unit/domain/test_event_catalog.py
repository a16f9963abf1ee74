"""The event types, their schemas and samples, and the bodies that are really frozen."""

import json
from uuid import UUID

import jsonschema_rs
import pytest

from cuepost.domain.event import event_body
from cuepost.domain.event_catalog import (
    BY_NAME,
    BY_STATUS,
    CATALOG,
    DEFAULT_SUBSCRIPTION,
    ENDPOINT_FAILING,
    ENDPOINT_RECOVERED,
    ERROR_MESSAGE_LIMIT,
    SUBSCRIBABLE,
    TEST_EVENT,
    EventType,
    endpoint_data,
    milestone_data,
    webhook_test_data,
)
from cuepost.domain.project import ProcessingError, Stage
from cuepost.testing import START, Factory, SequentialIds, VirtualClock

PROJECT = UUID("0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90")
EVENT = UUID("0198c0de-7b2c-7f00-8a1b-2c3d4e5f6071")
BASE_URL = "https://cuepost.example.com"
RESULT_URL = f"{BASE_URL}/v1/projects/{PROJECT}/result"
OUT_OF_MEMORY = ProcessingError("out_of_memory", "The renderer ran out of memory.")

every_type = pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)


def body_of(entry: EventType, stage: Stage, error: ProcessingError | None = None) -> bytes:
    if entry.name == TEST_EVENT:
        data = webhook_test_data(PROJECT)
    elif entry.status is None:
        recovered = START if entry.name == ENDPOINT_RECOVERED else None
        data = endpoint_data(PROJECT, START, recovered)
    else:
        ids = SequentialIds()
        project = Factory(ids, VirtualClock()).project(
            ids(START), id=PROJECT, status=entry.status, stage=stage
        )
        data = milestone_data(project, error, BASE_URL)
    return event_body(EVENT, entry.name, START, data)


def is_valid(entry: EventType, body: object) -> bool:
    schema = entry.schema()
    jsonschema_rs.meta.validate(schema)
    return jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(body)


def test_the_catalogue_has_the_types_and_defaults_of_the_specification() -> None:
    assert [(entry.name, entry.subscribed_by_default, entry.subscribable) for entry in CATALOG] == [
        ("project.completed", True, True),
        ("project.failed", True, True),
        ("project.ready", False, True),
        ("project.cancelled", False, True),
        ("webhook.test", False, False),
        ("endpoint.failing", False, True),
        ("endpoint.recovered", False, True),
    ]


def test_what_is_derived_from_the_catalogue_agrees_with_it() -> None:
    assert DEFAULT_SUBSCRIPTION == ("project.completed", "project.failed")
    of_projects = [*DEFAULT_SUBSCRIPTION, "project.ready", "project.cancelled"]
    assert list(SUBSCRIBABLE) == [*of_projects, ENDPOINT_FAILING, ENDPOINT_RECOVERED]
    assert {name: entry.name for name, entry in BY_NAME.items()} == {
        name: name for name in (*SUBSCRIBABLE, TEST_EVENT)
    }
    assert {status: entry.name for status, entry in BY_STATUS.items()} == {
        status: f"project.{status}" for status in ("completed", "failed", "ready", "cancelled")
    }


@pytest.mark.parametrize(
    ("name", "stage", "error", "data"),
    [
        (
            "project.completed",
            Stage.EXPORT,
            None,
            {"status": "completed", "stage": "export", "resultUrl": RESULT_URL},
        ),
        (
            "project.failed",
            Stage.PROCESSING,
            OUT_OF_MEMORY,
            {
                "status": "failed",
                "stage": "processing",
                "error": {"code": "out_of_memory", "message": "The renderer ran out of memory."},
            },
        ),
        (
            "project.failed",
            Stage.EXPORT,
            None,
            {
                "status": "failed",
                "stage": "export",
                "error": {"code": "unknown", "message": "The pipeline gave no reason."},
            },
        ),
        ("project.ready", Stage.PROCESSING, None, {"status": "ready", "stage": "processing"}),
        ("project.cancelled", Stage.EXPORT, None, {"status": "cancelled", "stage": "export"}),
    ],
)
def test_the_data_of_a_project_event_is_exactly_this(
    name: str, stage: Stage, error: ProcessingError | None, data: dict[str, object]
) -> None:
    body = json.loads(body_of(BY_NAME[name], stage, error))
    assert list(body["data"].items()) == list(({"projectId": str(PROJECT)} | data).items())


def test_the_data_of_a_test_event_names_the_endpoint() -> None:
    assert webhook_test_data(PROJECT) == {
        "webhookId": str(PROJECT),
        "message": "This is a test event from cuepost. Handle it apart from project events.",
    }


@every_type
def test_the_sample_fits_its_schema(entry: EventType) -> None:
    assert is_valid(entry, entry.sample())


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("project.completed", Stage.EXPORT),
        ("project.failed", Stage.PROCESSING),
        ("project.failed", Stage.EXPORT),
        ("project.ready", Stage.PROCESSING),
        ("project.cancelled", Stage.PROCESSING),
        ("project.cancelled", Stage.EXPORT),
        ("webhook.test", Stage.PROCESSING),
        ("endpoint.failing", Stage.PROCESSING),
        ("endpoint.recovered", Stage.PROCESSING),
    ],
)
def test_a_real_body_fits_the_schema_of_its_type(name: str, stage: Stage) -> None:
    entry = BY_NAME[name]
    assert is_valid(entry, json.loads(body_of(entry, stage, OUT_OF_MEMORY)))


@every_type
def test_a_real_body_and_the_sample_have_the_same_keys_in_the_same_order(entry: EventType) -> None:
    body = json.loads(body_of(entry, Stage.EXPORT, OUT_OF_MEMORY))
    assert list(body) == list(entry.sample())
    assert list(body["data"]) == list(entry.sample()["data"]) == list(entry.data_properties)


@every_type
@pytest.mark.parametrize("place", ["", "data"])
def test_the_schema_refuses_any_further_field(entry: EventType, place: str) -> None:
    sample = entry.sample()
    (sample[place] if place else sample)["caption"] = "Once upon a time"
    assert not is_valid(entry, sample)


@every_type
def test_the_schema_refuses_a_missing_field(entry: EventType) -> None:
    for name in entry.sample():
        assert not is_valid(entry, {k: v for k, v in entry.sample().items() if k != name})
    for name in entry.sample()["data"]:
        data = {k: v for k, v in entry.sample()["data"].items() if k != name}
        assert not is_valid(entry, entry.sample() | {"data": data})


def test_no_event_has_a_place_for_media_or_caption_text() -> None:
    fields = {name for entry in CATALOG for name in entry.data_properties}
    assert fields == {
        "projectId",
        "status",
        "stage",
        "resultUrl",
        "error",
        "webhookId",
        "message",
        "failingSince",
        "recoveredAt",
    }


@pytest.mark.parametrize("length", [ERROR_MESSAGE_LIMIT, ERROR_MESSAGE_LIMIT + 1, 5_000])
def test_an_error_message_is_cut_to_three_hundred_characters(length: int) -> None:
    entry = BY_NAME["project.failed"]
    body = json.loads(body_of(entry, Stage.EXPORT, ProcessingError("long", "ü" * length)))
    assert body["data"]["error"]["message"] == "ü" * 300
    assert is_valid(entry, body)
