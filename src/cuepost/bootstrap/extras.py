"""The optional extras, and the error if a needed one is not installed."""

from importlib.util import find_spec

# The packages of each extra that our code imports.
EXTRAS = {
    "mcp": ("mcp",),
    "oidc": ("httpx2", "jwt"),
    "otel": ("opentelemetry",),
    "postgres": ("asyncpg", "greenlet"),
    "s3": ("obstore",),
}


class MissingExtra(Exception):
    """A setting or a command needs packages that are not installed."""

    def __init__(self, reason: str, extra: str) -> None:
        super().__init__(
            f"{reason}, but the packages for it are not installed; "
            f"run: pip install 'cuepost[{extra}]'"
        )


def is_installed(extra: str) -> bool:
    """Does not import the packages."""
    return all(find_spec(name) is not None for name in EXTRAS[extra])


def require(extra: str, reason: str) -> None:
    """Called before an extra is imported; `reason` says what needs it."""
    if not is_installed(extra):
        raise MissingExtra(reason, extra)
