"""Fixtures for tests of the adapters: an authority that the sender trusts."""

import ssl

import pytest

from cuepost.adapters.guarded_transport import tls_context
from tests.support.certificates import Authority


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="session")
def trusting(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """What the product would use with the authority as the operator's extra one."""
    file = tmp_path_factory.mktemp("trust") / "authority.pem"
    return tls_context(authority.write_to(file))
