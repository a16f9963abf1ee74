"""Fetches what the benchmarks need besides Python packages, as far as it is available."""

import shutil

from benchmarks.peers.environment import BULLMQ
from tests.support.debian import install_packages

if __name__ == "__main__":
    if shutil.which("perf") is None:
        install_packages("linux-perf")
    BULLMQ.prepare()
