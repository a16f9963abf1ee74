"""The numbers that tune how deliveries are claimed, sent and recorded, with what must hold of them.

Each has its reason, and the decision (docs/decisions) that set it or the mechanism it belongs to.
Limits of the contract and of what a receiver may send are not here: those are promises, and stand
beside the code that keeps them.
"""

# Leases and workers

# A worker that is silent for this long is taken for dead, and others take its work over. 0011
LEASE_SECONDS = 10.0
# Two heartbeats may fail before the lease runs out. 0011
HEARTBEATS_PER_LEASE = 3
# A lane stays with its worker while events keep coming, even when none is there right now. 0042
IDLE_LANE_KEPT_SECONDS = 10.0
# There may be thousands of them, so they are not looked at in every claim. 0042
HELD_LANES_LOOKED_AT_SECONDS = 1.0

# Deliveries that were handed over are read in groups of at most this many. 0042
HANDED_OVER_AT_ONCE = 500

# A worker that stops releases lanes no more often than this while its last attempts end. 0042
LEAVING_PAUSE_SECONDS = 0.05

# Claims

# With other workers, something may be due that nobody announced. 0011
POLL_SECONDS = 1.0
# The only worker hears of everything by itself; this is a safety net. 0012
POLL_ALONE_SECONDS = 30.0
# A larger claim would delay everything else in this process. 0026
CLAIMED_AT_ONCE = 100
# How late a stop or a change of an endpoint may take effect on what is in memory. 0035
LONGEST_IN_MEMORY_SECONDS = 1.0
# Where every claim is slow, an answer of this age is still used: late is better than never. 0035
LATEST_ANSWER_SECONDS = 5.0
# Endpoints that were not announced wait no longer than this for a full scan. 0027
LONGEST_LEFT_OUT_SECONDS = 0.25
# A process holds this many times its attempts, so that nothing is waited for in between. 0011
HELD_PER_ATTEMPT = 8
# Of one endpoint at least this many times its cap may be held. 0011
HELD_PER_SLOT = 2
# Of a long queue an endpoint gets this many times its cap at first. 0026
FIRST_SHARE_PER_SLOT = 4
# Refilled sooner than this an endpoint may hold twice as much. 0026
QUICK_REFILL_SECONDS = 0.05
# Refilled later than this it may hold half as much. 0026
SLOW_REFILL_SECONDS = 0.2

# Attempts

# More than the endpoints that one process is expected to send to; an entry takes 1.5 kB. 0038
PREPARED_TARGETS = 32_768
# A bug in an attempt must not be repeated at once. 0011
PAUSE_AFTER_CRASH_SECONDS = 60.0

# Recording results

# A group is written in one transaction; larger ones gain little and delay others. 0041
RESULTS_AT_ONCE = 100
# From this many assignments in memory on, results are written in groups. 0026
BUSY_FROM = 32
# How long a group waits to become full. 0026
LONGEST_WAIT_SECONDS = 0.05
# SQLite has one writer, and what is being accepted waits for it. 0041
LONGEST_WAIT_ALONE_SECONDS = 0.02
# Attempts stop when this many times the attempts in flight are unrecorded. 0038
UNRECORDED_PER_ATTEMPT = 4
# The store may come back at any moment; asking it more often would not help it. 0011
PAUSE_AFTER_FAILURE_SECONDS = 0.5
# Contention is over as soon as the other transaction is. 0041
PAUSE_AFTER_CONTENTION_SECONDS = 0.02
# Then a group is split, since one of its results may be the cause. 0035
TRIES_TOGETHER = 5
# Then a result is set aside, and its delivery counts as interrupted. 0035
TRIES_APART = 10
# A process that stops tries this long to record what it has. 0011
PARTING_SECONDS = 5.0

# The watchdog

# Short enough to see within two seconds that nothing goes on. 0035
LOOK_SECONDS = 0.5
# Looks are counted instead of seconds, so that a suspended process has time to go on. 0035
LOOKS_UNTIL_STALLED = 4

# Maintenance: steps are small enough not to delay deliveries

# Jobs that advance in one round, so that a long one does not keep others waiting. 0003
BULK_RETRY_JOBS = 50
# Deliveries in one step of a job, in one transaction. 0003
BULK_RETRY_DELIVERIES = 500
# Projects whose access has ended, in one transaction. 0013
EXPIRED_PROJECTS = 100
# Rows of deleted endpoints, in one transaction. 0008
PURGED_ROWS = 1_000
# Listeners whose reader never came back, in one transaction. 0020
UNSERVED_LISTENERS_AT_ONCE = 20
# Rows of history that are deleted in one transaction. 0002
EXPIRED_ROWS_AT_ONCE = 250
# Pages that SQLite gives back to the file system in one step. 0004
PAGES_AT_ONCE = 50


class BadTuning(Exception):
    """Numbers in tuning.py contradict each other."""


def broken_relations() -> list[str]:
    """What must hold of the numbers above and does not."""
    relations = {
        "a lease outlives two heartbeats": HEARTBEATS_PER_LEASE >= 3,
        "idle lanes are looked at before they are let go": (
            HELD_LANES_LOOKED_AT_SECONDS < IDLE_LANE_KEPT_SECONDS
        ),
        "nothing in memory outlives a lease": LONGEST_IN_MEMORY_SECONDS < LEASE_SECONDS,
        "a late answer is older than what may be in memory, and the lease is older still": (
            LONGEST_IN_MEMORY_SECONDS < LATEST_ANSWER_SECONDS < LEASE_SECONDS
        ),
        "a full scan comes before a poll": LONGEST_LEFT_OUT_SECONDS < POLL_SECONDS,
        "workers that share poll more often than one alone": POLL_SECONDS <= POLL_ALONE_SECONDS,
        "a quick refill is quicker than a slow one": QUICK_REFILL_SECONDS < SLOW_REFILL_SECONDS,
        "an endpoint's first share is no less than its attempts": FIRST_SHARE_PER_SLOT >= 1,
        "memory holds more than is in flight": HELD_PER_ATTEMPT > 1 and HELD_PER_SLOT > 1,
        "there is room for what is in flight among the unrecorded": UNRECORDED_PER_ATTEMPT > 1,
        "groups on SQLite wait less": LONGEST_WAIT_ALONE_SECONDS <= LONGEST_WAIT_SECONDS,
        "a group is written before its memory is stale": (
            LONGEST_WAIT_SECONDS < LONGEST_IN_MEMORY_SECONDS
        ),
        "a stop tries to record more than once": PAUSE_AFTER_FAILURE_SECONDS < PARTING_SECONDS,
        "a stall is noticed after what may be in memory has gone back": (
            LOOK_SECONDS * LOOKS_UNTIL_STALLED > LONGEST_IN_MEMORY_SECONDS
        ),
        "a crash is postponed past what may be in memory": (
            PAUSE_AFTER_CRASH_SECONDS > LONGEST_IN_MEMORY_SECONDS
        ),
        "as many endpoints stay prepared as are promised": PREPARED_TARGETS >= 20_000,
    }
    return [name for name, holds in relations.items() if not holds]


def check() -> None:
    """Raises BadTuning; called before the engine starts."""
    if broken := broken_relations():
        raise BadTuning("; ".join(broken))
