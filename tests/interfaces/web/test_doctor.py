"""The signature doctor's page: what it actions on, what it shows, and that it keeps nothing."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.instants import to_millis
from cuepost.domain.signing import SigningSecret, signature
from tests.application.harness import Harness
from tests.interfaces.web.page_client import PageClient, opened
from tests.support.records import Records

HERE = "/settings/doctor"
BODY = '{"id":"1"}'


@dataclass(frozen=True)
class Told:
    sentence: str = "The body was <changed>."
    remedy: str = "Keep the raw bytes."
    is_valid: bool = False


@dataclass
class Notebook:
    """A doctor who writes down what it was asked."""

    asked: list[tuple[Any, ...]] = field(default_factory=list)

    def __call__(
        self,
        headers: str,
        body: str,
        secrets: Iterable[str],
        *,
        now: float | None = None,
        computed: str | None = None,
    ) -> Told:
        self.asked.append((headers, body, list(secrets), now, computed))
        return Told()


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    made = Notebook()
    monkeypatch.setattr("cuepost_receiver.doctor.diagnose", made)
    return made


@pytest.fixture
async def patient(harness: Harness, notebook: Notebook) -> PageClient:
    return await opened(harness).sign_in()


async def test_what_is_pasted_reaches_the_doctor_and_nothing_of_it_is_kept(
    patient: PageClient, notebook: Notebook
) -> None:
    await patient.get(HERE)
    before = await patient.harness.dump()
    answer = await patient.post(
        HERE,
        headers="webhook-id: 1",
        body="a\r\nb\r\n",
        secrets="whsec_x whsec_y",
        computed=" v1,z ",
    )
    now = patient.harness.clock.now().timestamp()
    assert notebook.asked == [("webhook-id: 1", "a\nb\n", ["whsec_x", "whsec_y"], now, "v1,z")]
    assert "The body was &lt;changed&gt;." in answer.text
    assert "Keep the raw bytes." in answer.text
    assert "whsec_x" not in answer.text
    assert await patient.harness.dump() == before


async def test_a_delivery_is_filled_in_as_it_was_sent_and_judged_at_its_time(
    patient: PageClient, notebook: Notebook
) -> None:
    harness = patient.harness
    made = await harness.endpoint()
    delivery = await harness.complete()
    headers = (
        ("webhook-id", "1"),
        ("webhook-timestamp", "1700000000"),
        ("webhook-signature", "v1,abc"),
    )
    attempt = Records(harness.clock, harness.ids).attempt(delivery, request_headers=headers)
    await harness.do(lambda t: t.attempts.add([attempt]))
    await harness.end(delivery, DeliveryStatus.FAILED)
    where = f"{HERE}?delivery={delivery.id}&webhook={made.view.endpoint.id}"
    page = (await patient.get(where)).text
    assert "webhook-signature: v1,abc" in page
    assert 'name="at" value="1700000000"' in page
    await patient.post(HERE, headers="x: y", body="", secrets="", at="1700000000")
    assert notebook.asked == [("x: y", "", [], 1_700_000_000.0, None)]


async def test_the_real_doctor_tells_good_from_bad(harness: Harness) -> None:
    patient = await opened(harness).sign_in()
    secret, now = SigningSecret(bytes(range(32))), to_millis(harness.clock.now()) // 1000
    headers = (
        f"webhook-id: 1\nwebhook-timestamp: {now}\n"
        f"webhook-signature: {signature(secret, '1', now, BODY.encode())}"
    )
    found = []
    for body in (BODY, BODY + "\n"):
        await patient.get(HERE)
        await patient.post(HERE, headers=headers, body=body, secrets=secret.reveal())
        found.append("pill-verified" in patient.last)
    assert found == [True, False]


@pytest.mark.parametrize("name", ["headers", "body"])
async def test_very_long_texts_are_refused(
    patient: PageClient, notebook: Notebook, name: str
) -> None:
    await patient.get(HERE)
    fields = {"headers": "x: y", "body": "", "secrets": ""} | {name: "x" * 65_537}
    answer = await patient.post(HERE, **fields)
    assert (answer.status_code, notebook.asked) == (422, [])
    assert "Paste at most 64 KiB" in answer.text
