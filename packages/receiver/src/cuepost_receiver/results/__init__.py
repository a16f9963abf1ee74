"""Downloads the files of a finished export, and resumes interrupted downloads."""

from cuepost_receiver.results.client import ResultClient
from cuepost_receiver.results.links import Link, Result
from cuepost_receiver.results.problems import Problem, ResultFailed

__all__ = ["Link", "Problem", "Result", "ResultClient", "ResultFailed"]
