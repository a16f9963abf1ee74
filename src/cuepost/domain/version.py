"""Versions: digests by which a caller notices that an endpoint or a project has changed."""

import json
from dataclasses import astuple
from datetime import datetime
from hashlib import sha256
from uuid import UUID

from cuepost.domain.endpoint import Endpoint, Keyring
from cuepost.domain.errors import PreconditionFailed
from cuepost.domain.instants import to_text
from cuepost.domain.project import Project

LENGTH = 32

Expected = frozenset[str] | None
"""The versions that a change may be made to; None allows every version."""


def endpoint_version(endpoint: Endpoint, keyring: Keyring) -> str:
    """Covers what an owner can change and the secrets, not the health."""
    previous = keyring.previous
    return _digest(
        endpoint.id,
        endpoint.url,
        endpoint.events,
        endpoint.description,
        endpoint.enabled,
        endpoint.updated_at,
        (keyring.current.version, keyring.current.hint),
        previous and (previous.version, previous.hint, previous.expires_at),
    )


def project_version(project: Project) -> str:
    return _digest(*astuple(project))


def require_version(expected: Expected, actual: str) -> None:
    if expected is not None and actual not in expected:
        raise PreconditionFailed


def _digest(*values: object) -> str:
    return sha256(json.dumps(values, default=_as_text).encode()).hexdigest()[:LENGTH]


def _as_text(value: object) -> str:
    if isinstance(value, datetime):
        return to_text(value)
    assert isinstance(value, UUID)
    return str(value)
