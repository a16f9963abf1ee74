"""The command line: what operators do, and how the service is started."""

from cuepost.interfaces.cli.app import cli

__all__ = ["cli"]
