"""`cuepost mcp`: offers the tools of a running service over standard input and output."""

import click

from cuepost.interfaces.cli.runtime import Runtime


@click.command()
@click.pass_obj
def mcp(runtime: Runtime) -> None:
    """Offer the tools of a running service to a desktop client.

    The client starts this command and speaks MCP with it over standard input and output. Each
    call is passed on to the service at CUEPOST_URL, with the API key in CUEPOST_API_KEY; the
    scopes of the key decide which tools are available. Clients that speak HTTP do not need this
    command: they can connect to /mcp of the service.

    \b
    In the client's configuration:
      {"mcpServers": {"cuepost": {
        "command": "cuepost", "args": ["mcp"],
        "env": {"CUEPOST_URL": "https://cuepost.example.com",
                "CUEPOST_API_KEY": "cpk_..."}}}}
    """
    runtime.speak_mcp()
