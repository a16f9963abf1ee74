"""UUIDs that are created, compared and formatted several times as fast as the standard library's.

The class comes with the PostgreSQL driver, is a subclass of `uuid.UUID`, and equals it by value.
Each delivery handles about a dozen ids.
"""

import sys
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from uuid import UUID

ID_BYTES = 16
DRIVER = "asyncpg"


def _uuids_of_driver() -> ModuleType:
    """Loads the module without the driver itself, which an embedded store does not need.

    That saves 23 modules and 3 MB. While the module is loaded, an empty package stands in for the
    driver; a later import of the driver loads all of it.
    """
    if DRIVER not in sys.modules:
        spec = find_spec(DRIVER)
        assert spec is not None
        sys.modules[DRIVER] = module_from_spec(spec)
        try:
            return _loaded()
        finally:
            del sys.modules[DRIVER]
    return _loaded()


def _loaded() -> ModuleType:
    from asyncpg.pgproto import pgproto  # noqa: PLC0415  # see above

    found: ModuleType = pgproto
    return found


# The class takes text as well.
id_from: Callable[[bytes], UUID] = _uuids_of_driver().UUID
