"""The command line as an operator sees it: arguments in; exit code, words and JSON out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from click.testing import CliRunner, Result

from cuepost.bootstrap.runtime import ServiceRuntime
from cuepost.domain.access import Caller, Interface
from cuepost.interfaces.cli import cli
from cuepost.interfaces.cli.runtime import CommandContext


@dataclass(frozen=True, slots=True)
class Terminal:
    environ: Mapping[str, str]

    def with_settings(self, **settings: str) -> "Terminal":
        more = {f"CUEPOST_{name}": value for name, value in settings.items()}
        return Terminal({**self.environ, **more})

    def run(self, *arguments: str, typed: str | bytes | None = None) -> Result:
        """Anything that is not an orderly end is raised."""
        runtime = ServiceRuntime(self.environ)
        result = CliRunner().invoke(cli, arguments, obj=runtime, input=typed, prog_name="cuepost")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def words(self, *arguments: str) -> str:
        result = self.run(*arguments)
        assert (result.exit_code, result.stderr) == (0, "")
        return result.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.words(*arguments, "--json"))

    def caller_with(self, token: str) -> Caller:
        """Whom the service takes the bearer of this key for."""

        async def come_in(context: CommandContext) -> Caller:
            return await context.service.authenticate.caller(token, Interface.REST, None)

        return ServiceRuntime(self.environ).use(come_in)

    def refusal(self, *arguments: str, typed: str | None = None) -> tuple[int, str]:
        """Exit code and what was said on standard error."""
        result = self.run(*arguments, typed=typed)
        assert result.exit_code != 0
        return result.exit_code, result.stderr
