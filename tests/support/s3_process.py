"""A private S3 in a process of its own, with one bucket."""

import http.client
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.checking_s3 import ACCESS_KEY, REGION, SECRET_KEY

PATIENCE_SECONDS = 30.0
BUCKET = "results"


@dataclass(frozen=True, slots=True)
class S3Process:
    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def credentials(self) -> Mapping[str, str]:
        """As every tool for AWS takes them from the environment."""
        return {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}

    @property
    def settings(self) -> Mapping[str, str]:
        """Of a service whose media are here."""
        return {
            "MEDIA_URL": f"s3://{BUCKET}/exports",
            "S3_ENDPOINT": self.endpoint,
            "S3_REGION": REGION,
        }

    def make_bucket(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        place = f"<LocationConstraint>{REGION}</LocationConstraint>"
        body = f"<CreateBucketConfiguration>{place}</CreateBucketConfiguration>"
        # A PUT is not presigned, and so not checked; only its region is looked at.
        credential = f"Credential={ACCESS_KEY}/20260101/{REGION}/s3/aws4_request"
        headers = {"Authorization": f"AWS4-HMAC-SHA256 {credential}"}
        connection.request("PUT", f"/{BUCKET}", body, headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        connection.close()


@contextmanager
def running_s3() -> Iterator[S3Process]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.checking_s3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE_SECONDS)
        assert ready, "no S3"
        found = S3Process(int(process.stdout.readline()))
        found.make_bucket()
        yield found
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_SECONDS)
