"""Signed webhook notifications for a captioning and video-export product."""

# As in pyproject.toml. Reading the version from the package's metadata takes 0.8 MB of memory.
__version__ = "0.2.0"
