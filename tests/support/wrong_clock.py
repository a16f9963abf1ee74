"""`cuepost` on a machine whose clock is off.

Usage: python -m tests.support.wrong_clock SECONDS_AHEAD COMMAND …
"""

import sys
from datetime import datetime, timedelta

from cuepost.adapters.system_clock import SystemClock
from cuepost.bootstrap import main

if __name__ == "__main__":
    ahead = timedelta(seconds=float(sys.argv.pop(1)))
    right = SystemClock.now

    def wrong(self: SystemClock) -> datetime:
        return right(self) + ahead

    SystemClock.now = wrong  # type: ignore[method-assign]  # that is what this is for
    main()
