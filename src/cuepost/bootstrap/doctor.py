"""The signature doctor comes with the receiver kit; without the kit there is no page for it."""

from importlib import import_module
from importlib.util import find_spec

from cuepost.doors.web.doctor import Diagnose

KIT = "cuepost_receiver"


def doctor() -> Diagnose | None:
    if find_spec(KIT) is None:
        return None
    diagnose: Diagnose = import_module(f"{KIT}.doctor").diagnose
    return diagnose
