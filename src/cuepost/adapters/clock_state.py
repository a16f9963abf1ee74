"""Whether the operating system keeps its clock synchronised (`adjtimex` of Linux)."""

import ctypes

_TIME_ERROR = -1
_UNSYNCHRONISED = 0x40


class _Timex(ctypes.Structure):
    """The first fields of `struct timex`; `rest` has room for the others that the kernel writes."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("frequency", ctypes.c_long),
        ("largest_error", ctypes.c_long),
        ("estimated_error", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 512),
    )


def is_synchronised() -> bool | None:
    """None if the system cannot tell. Without `modes`, the call only reads."""
    state = _Timex()
    try:
        answer = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(state))
    except AttributeError:
        return None
    return None if answer == _TIME_ERROR else not state.status & _UNSYNCHRONISED
