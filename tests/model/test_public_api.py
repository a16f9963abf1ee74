"""The public API against a model of it: calls by chance, each answer and each request foretold.

`CUEPOST_TEST_MODEL_EXAMPLES` says how many runs of 50 steps, `CUEPOST_TEST_MODEL_FIRST` by which
chance: the same number makes the same calls.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import initialize, run_state_machine_as_test

from tests.model.delivery_rules import DeliveryRules
from tests.model.expected import EVENTS
from tests.model.project_rules import ProjectRules
from tests.model.service_under_test import ServiceUnderTest
from tests.model.webhook_rules import WebhookRules

EXAMPLES = int(os.environ.get("CUEPOST_TEST_MODEL_EXAMPLES", "200"))
FIRST = int(os.environ.get("CUEPOST_TEST_MODEL_FIRST", "1"))
STEPS = 50
PARTS = 4


class PublicApi(ProjectRules, WebhookRules, DeliveryRules):
    """All of it at once, by someone who has begun already."""

    @initialize()
    def begin(self) -> None:
        self.service.begin()
        for _ in range(2):
            self.create_webhook(events=sorted(EVENTS.values()), described=False)
            self.create_project(kind="video", access=None)
        self.report([(1, 0, True), (2, 0, True)])


@pytest.fixture
def service(engine_store_file: Path, tmp_path: Path) -> Iterator[ServiceUnderTest]:
    service = ServiceUnderTest(engine_store_file, tmp_path)
    yield service
    service.close()


@pytest.mark.parametrize("part", range(PARTS))
def test_the_api_does_what_the_model_says(service: ServiceUnderTest, part: int) -> None:
    PublicApi.service = service
    run_state_machine_as_test(
        seed(FIRST + part)(PublicApi),
        settings=settings(
            max_examples=max(1, EXAMPLES // PARTS),
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
