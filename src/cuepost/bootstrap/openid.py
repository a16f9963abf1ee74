"""The sign-in with the OpenID provider that the settings name, and its check."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cuepost.adapters.guarded_transport import tls_context
from cuepost.application.provider_sign_in import SignInWithProvider
from cuepost.bootstrap.container import Container
from cuepost.bootstrap.extras import is_installed, require
from cuepost.domain.identity import IdentityRules
from cuepost.interfaces.cli.runtime import CheckResult, failure, fine
from cuepost.interfaces.web.provider_sign_in import CALLBACK
from cuepost.ports.identity_provider import ProviderUnavailable
from cuepost.ports.system import Clock
from cuepost.settings import Settings

if TYPE_CHECKING:
    from cuepost.adapters.openid.provider import OpenIdProvider


@asynccontextmanager
async def provider_sign_in(container: Container) -> AsyncIterator[SignInWithProvider | None]:
    settings, system = container.settings, container.system
    if settings.oidc_issuer is None:
        yield None
        return
    rules = IdentityRules(
        settings.oidc_account_claim,
        settings.oidc_role_claim or "",
        settings.oidc_roles,
        settings.oidc_default_role,
    )
    name = settings.oidc_name or urlsplit(settings.oidc_issuer).hostname or ""
    async with _provider(settings, system.clock) as provider:
        yield SignInWithProvider(container.service.sign_in, provider, system.box, rules, name)


@asynccontextmanager
async def _provider(settings: Settings, clock: Clock) -> AsyncIterator["OpenIdProvider"]:
    """Imports the client here, because most services need none."""
    require("oidc", "CUEPOST_OIDC_ISSUER names an OpenID provider")
    from cuepost.adapters.openid.provider import (  # noqa: PLC0415  # see above
        OpenIdClient,
        OpenIdProvider,
    )

    client = OpenIdClient(
        settings.oidc_issuer or "",
        settings.oidc_client_id or "",
        settings.oidc_client_secret or "",
        f"{settings.base_url}{CALLBACK}",
        settings.oidc_scopes,
    )
    ca_file = str(settings.extra_ca_file) if settings.extra_ca_file else None
    provider = OpenIdProvider(client, clock, tls_context(ca_file))
    try:
        yield provider
    finally:
        await provider.close()


async def openid_checks(settings: Settings, clock: Clock) -> AsyncIterator[CheckResult]:
    if settings.oidc_issuer is None or not is_installed("oidc"):
        return
    async with _provider(settings, clock) as provider:
        try:
            count = await provider.check()
        except ProviderUnavailable as error:
            yield failure(
                "openid",
                f"The provider of CUEPOST_OIDC_ISSUER cannot be used: {error}.",
                "Check the issuer, and that this machine can connect to it. Until then members "
                "sign in by password or one-time link.",
            )
        else:
            yield fine("openid", f"The provider answers, with {count} key{'s' * (count > 1)}.")
