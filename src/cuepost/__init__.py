"""Signed webhook notifications for a captioning and video-export product."""

from importlib.metadata import version

__version__ = version("cuepost")
