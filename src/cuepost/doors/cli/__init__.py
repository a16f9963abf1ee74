"""The command line: what operators do, and how the service is started."""

from cuepost.doors.cli.app import cli

__all__ = ["cli"]
