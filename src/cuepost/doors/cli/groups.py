"""Groups of commands."""

import click


class InOrder(click.Group):
    """Lists its commands as they were added: first what a newcomer needs first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)
