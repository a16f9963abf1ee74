"""Command groups."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class OrderedGroup(click.Group):
    """Lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class LazyGroup(click.Group):
    """Imports a command only when it is used, which keeps the start of the service fast.

    `targets` maps each command to `module:name`, in the order in which help lists them.
    """

    def __init__(self, *given: Any, targets: Mapping[str, str], **more: Any) -> None:
        self._targets = targets
        self._loaded: dict[str, click.Command] = {}
        super().__init__(*given, **more)

    @property
    def commands(self) -> dict[str, click.Command]:
        """Every command; importing them all is slow."""
        return {name: self._command(name) for name in self._targets}

    @commands.setter
    def commands(self, given: Mapping[str, click.Command]) -> None:
        """The constructor of the base class assigns an empty mapping."""
        assert not given

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._targets)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._command(cmd_name) if cmd_name in self._targets else None

    def _command(self, name: str) -> click.Command:
        if name not in self._loaded:
            module, _, attribute = self._targets[name].partition(":")
            found = getattr(import_module(f"cuepost.interfaces.cli.{module}"), attribute)
            assert isinstance(found, click.Command)
            self._loaded[name] = found
        return self._loaded[name]
