"""Installs packages of the distribution, where tests need them and we are allowed to."""

import os
import shutil
import subprocess

INSTALL_SECONDS = 600


def install_packages(*names: str) -> None:
    """Does nothing without root or apt-get; tests that need the packages look for them again."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", *names]):
        subprocess.run(
            command,
            check=False,
            capture_output=True,
            timeout=INSTALL_SECONDS,
            env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        )
