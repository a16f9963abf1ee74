"""Media in S3: presigned links that a real server accepts, and what happens without one."""

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from urllib.parse import parse_qs, unquote, urlsplit

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuepost.adapters.media.s3 import S3Media
from cuepost.adapters.system_clock import SystemClock
from cuepost.domain.artifact import Artifact, is_media_key
from cuepost.domain.errors import MediaUnavailable
from cuepost.testing import START, Factory, SequentialIds, VirtualClock
from tests.support.checking_s3 import REGION, SECRET_KEY
from tests.support.s3_process import BUCKET, S3Process, running_s3
from tests.support.service_process import PATIENCE_SECONDS, free_port

PROJECT = Factory(SequentialIds(), VirtualClock()).project(SequentialIds()(START))
VIDEO = Artifact("video", "Größe.mp4", "a/1/Größe.mp4", "video/mp4", 7)
QUARTER = timedelta(minutes=15)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Process]:
    with running_s3() as found:
        yield found


@pytest.fixture
def media(s3: S3Process, monkeypatch: pytest.MonkeyPatch) -> S3Media:
    for name, value in s3.credentials.items():
        monkeypatch.setenv(name, value)
    return S3Media.of(BUCKET, "exports", endpoint=s3.endpoint, region=REGION, path_style=True)


async def link(media: S3Media, artifact: Artifact = VIDEO, life: timedelta = QUARTER) -> str:
    now = SystemClock().now()
    return await media.link(PROJECT, artifact, now, now + life)


async def put(media: S3Media, content: bytes, artifact: Artifact = VIDEO) -> list[int]:
    heard: list[int] = []
    await media.put(artifact, BytesIO(content), heard.append)
    return heard


async def fetched(url: str) -> httpx2.Response:
    async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
        return await client.get(url)


async def test_what_was_put_is_fetched_with_its_type_and_its_name(media: S3Media) -> None:
    assert await put(media, b"content") == [7]
    answer = await fetched(await link(media))
    assert (answer.status_code, answer.content) == (200, b"content")
    assert answer.headers["content-type"] == "video/mp4"
    assert answer.headers["content-disposition"] == VIDEO.disposition


async def test_a_large_file_is_put_in_parts(media: S3Media) -> None:
    content = bytes(range(256)) * 50_000
    assert sum(await put(media, content)) == len(content)
    assert (await fetched(await link(media))).content == content


@pytest.mark.parametrize(
    "key",
    ["a b/c+d.mp4", "100%/ü?#&=.mp4", "..a/b..", "*'()~!$,;:@[]{}|^`<>\"", "%2e%2e/x", "日本"],
)
async def test_whatever_the_key_the_link_is_to_it(media: S3Media, key: str) -> None:
    artifact = replace(VIDEO, key=key)
    await put(media, key.encode(), artifact)
    assert (await fetched(await link(media, artifact))).content == key.encode()


async def test_a_link_lives_in_whole_seconds_and_never_longer_than_it_should(
    media: S3Media,
) -> None:
    await put(media, b"content")
    lives = {timedelta(seconds=60.999): "60", QUARTER: "900", timedelta(seconds=0.9): "0"}
    links = {life: await link(media, life=life) for life in lives}
    found = {life: parse_qs(urlsplit(each).query) for life, each in links.items()}
    assert {life: each["X-Amz-Expires"] for life, each in found.items()} == {
        life: [seconds] for life, seconds in lives.items()
    }
    assert (await fetched(links[timedelta(seconds=0.9)])).status_code == 403


async def test_a_bucket_can_stand_in_front_of_the_host(s3: S3Process, media: S3Media) -> None:
    own = S3Media.of(BUCKET, endpoint="https://s3.example.com:9000", path_style=False)
    parts = urlsplit(await link(own))
    assert (parts.netloc, unquote(parts.path)) == (f"{BUCKET}.s3.example.com:9000", f"/{VIDEO.key}")


async def test_without_an_endpoint_it_is_aws_in_the_region(media: S3Media) -> None:
    parts = urlsplit(await link(S3Media.of(BUCKET, region="eu-west-1", path_style=True)))
    assert parts.netloc == "s3.eu-west-1.amazonaws.com"
    own = urlsplit(await link(S3Media.of(BUCKET, region="eu-west-1", path_style=False)))
    assert own.netloc == f"{BUCKET}.s3.eu-west-1.amazonaws.com"


async def test_the_usual_variables_count_where_nothing_is_set(
    media: S3Media, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://s3.example.com")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of an hour")
    parts = urlsplit(await link(S3Media.of(BUCKET)))
    query = parse_qs(parts.query)
    assert (parts.netloc, query["X-Amz-Security-Token"]) == ("s3.example.com", ["of an hour"])
    assert "/eu-north-1/s3/" in query["X-Amz-Credential"][0]


async def test_a_store_that_is_down_is_said_without_its_details(
    media: S3Media, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("cuepost.adapters.media.s3.RETRIES", 0)
    down = S3Media.of(BUCKET, endpoint=f"http://127.0.0.1:{free_port()}", region=REGION)
    with pytest.raises(MediaUnavailable) as refused:
        await put(down, b"content")
    assert "127.0.0.1" not in str(refused.value)
    assert "event=media_unavailable cause=GenericError" in caplog.text
    assert SECRET_KEY not in caplog.text


async def test_credentials_that_do_not_come_are_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("cuepost.adapters.media.s3.SIGNING_SECONDS", 0.2)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{port}")
        with pytest.raises(MediaUnavailable):
            await link(S3Media.of(BUCKET, endpoint="https://s3.example.com"))
    assert "cause=TimeoutError timed out waiting for credentials" in caplog.text


STEPS = st.sampled_from(["a", "..", ".", "", "%2e%2e", "ü", "..%2f", "\\", "~", "a b", "\0"])
KEYS = st.one_of(st.lists(STEPS, max_size=6).map("/".join), st.text())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(KEYS)
def test_no_key_leads_out_of_the_prefix(media: S3Media, key: str) -> None:
    if is_media_key(key):
        path = urlsplit(asyncio.run(link(media, replace(VIDEO, key=key)))).path
        assert unquote(path) == f"/{BUCKET}/exports/{key}"
        assert not {".", ".."} & set(path.split("/"))
