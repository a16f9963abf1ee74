"""Whether the operating system keeps its clock in step with others (`adjtimex` of Linux)."""

import ctypes

_TIME_ERROR = -1
_NOT_IN_STEP = 0x40


class _Timex(ctypes.Structure):
    """The beginning of `struct timex`; the system fills in the rest of the room as well."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("frequency", ctypes.c_long),
        ("largest_error", ctypes.c_long),
        ("estimated_error", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 512),
    )


def is_in_step() -> bool | None:
    """None where the system does not tell. Nothing is changed: no mode is asked for."""
    state = _Timex()
    try:
        answer = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(state))
    except AttributeError:
        return None
    return None if answer == _TIME_ERROR else not state.status & _NOT_IN_STEP
