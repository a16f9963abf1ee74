"""Parts that are installed as extras, and what is said where one is missing."""

from importlib.util import find_spec

# Extra -> the packages that it brings and that our code imports.
EXTRAS = {
    "mcp": ("mcp",),
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
    """Found without loading any of it."""
    return all(find_spec(name) is not None for name in EXTRAS[extra])


def require(extra: str, reason: str) -> None:
    """Before anything of an extra is imported; `reason` says what asks for it."""
    if not is_installed(extra):
        raise MissingExtra(reason, extra)
