"""The command line for operators and developers."""

from cuepost.interfaces.cli.app import cli

__all__ = ["cli"]
