"""Fetches what a finished export left: fresh links, then the files, over broken connections."""

from cuepost_receiver.results.client import ResultClient
from cuepost_receiver.results.links import Link, Result
from cuepost_receiver.results.problems import Problem, ResultFailed

__all__ = ["Link", "Problem", "Result", "ResultClient", "ResultFailed"]
