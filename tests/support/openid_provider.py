"""The certified `oidc-provider` of npm, as a process on loopback."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.node_packages import OPENID, openid_packages

CLIENT_ID, CLIENT_SECRET = "cuepost", "a secret & more+"


@contextmanager
def openid_provider(
    folder: Path, redirect_uri: str, people: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Its issuer. `people` has the claims of each person, by the name that they sign in with."""
    folder.mkdir()
    (folder / "node_modules").symlink_to(openid_packages())
    program = shutil.copy(OPENID.source / "provider.mjs", folder)
    given = {
        "clientId": CLIENT_ID,
        "clientSecret": CLIENT_SECRET,
        "redirectUri": redirect_uri,
        "people": people,
    }
    with (
        (folder / "provider.log").open("w") as log,
        subprocess.Popen(
            ["node", program, json.dumps(given)], stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            issuer = process.stdout.readline().strip()
            assert issuer, (folder / "provider.log").read_text()
            yield issuer
        finally:
            process.kill()


def settings_for(issuer: str) -> dict[str, str]:
    return {
        "OIDC_ISSUER": issuer,
        "OIDC_CLIENT_ID": CLIENT_ID,
        "OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "OIDC_NAME": "Example ID",
        "OIDC_ACCOUNT_CLAIM": "org",
        "OIDC_ROLE_CLAIM": "groups",
        "OIDC_ROLES": "admins=owner,staff=viewer",
    }
