"""Groups of commands."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class InOrder(click.Group):
    """Lists its commands as they were added: first what a newcomer needs first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class LoadedLate(click.Group):
    """Imports a command when it is used: a service needs none of the others.

    `places` says where each one is, as `module:name`, in the order in which they are listed.
    """

    def __init__(self, *given: Any, places: Mapping[str, str], **more: Any) -> None:
        self._places = places
        self._loaded: dict[str, click.Command] = {}
        super().__init__(*given, **more)

    @property
    def commands(self) -> dict[str, click.Command]:
        """All of them, for whoever wants to see all of them."""
        return {name: self._command(name) for name in self._places}

    @commands.setter
    def commands(self, given: Mapping[str, click.Command]) -> None:
        """The base class sets what it was given; here that is nothing."""
        assert not given

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._command(cmd_name) if cmd_name in self._places else None

    def _command(self, name: str) -> click.Command:
        if name not in self._loaded:
            module, _, attribute = self._places[name].partition(":")
            found = getattr(import_module(f"cuepost.interfaces.cli.{module}"), attribute)
            assert isinstance(found, click.Command)
            self._loaded[name] = found
        return self._loaded[name]
