"""The numbers that tune how deliveries are claimed, sent and recorded, and how they must relate.

Each has its reason, and the number of the decision (docs/decisions) that set it. Limits that users
can rely on, such as those of the API, are not here but beside the code that enforces them.
"""

# Leases and workers

# A worker without a heartbeat for this long is considered dead; others take its work over. 0011
LEASE_SECONDS = 10.0
# Two heartbeats may fail before the lease expires. 0011
HEARTBEATS_PER_LEASE = 3
# A worker keeps an idle lane for this long, because more events usually follow. 0064
IDLE_LANE_KEPT_SECONDS = 600.0
# If it holds more lanes than this, idle ones are released sooner. 0064
IDLE_LANES_KEPT = 32_768
# A worker may hold thousands of lanes, so it does not look for idle ones at every claim. 0064
IDLE_LANE_CHECK_SECONDS = 10.0
# Lanes that another worker owns by now are released soon after their last attempt. 0042
LEAVING_LANE_CHECK_SECONDS = 1.0

# Deliveries that were handed over are read in groups of at most this many. 0042
HANDED_OVER_AT_ONCE = 250
# No more than this many wait until memory has room: a busy worker sends them in seconds. 0064
HANDED_OVER_WAITING = 16_384
# Shorter than it takes to send what is in a full memory. 0064
PAUSE_WITH_FULL_MEMORY_SECONDS = 0.01

# A worker that stops releases lanes no more often than this while its last attempts end. 0042
LEAVING_PAUSE_SECONDS = 0.05

# Claims

# With several workers, a wake-up may be lost. 0011
POLL_SECONDS = 1.0
# A worker that is alone gets every wake-up; polling is only a safety net. 0012
POLL_ALONE_SECONDS = 30.0
# A larger claim would delay everything else in this process. 0026
CLAIMED_AT_ONCE = 100
# How late a stop or a change of an endpoint may take effect on what is in memory. 0035
LONGEST_IN_MEMORY_SECONDS = 1.0
# If every claim is slow, an answer of this age is still used: late is better than never. 0035
LATEST_ANSWER_SECONDS = 5.0
# Endpoints without a wake-up wait no longer than this for a full scan. 0027
LONGEST_WITHOUT_SCAN_SECONDS = 0.25
# A process holds this many times its attempts, so that no attempt waits for a claim. A busy process
# sends them long before they are outdated. 0068
HELD_AT_FIRST_PER_ATTEMPT = 2
# It holds up to this many times its attempts while most of them wait for slow endpoints. 0011
HELD_PER_ATTEMPT = 8
# Only then it is compared with what a process sends in this time. 0068
SHORT_OF_MEMORY_SECONDS = 0.05
# A lane may hold at least this many times the endpoint's cap. 0011
HELD_PER_SLOT = 2
# The first claim of a backlog takes this many times the endpoint's cap. 0026
FIRST_SHARE_PER_SLOT = 4
# A lane that is refilled sooner than this may hold twice as much. 0026
QUICK_REFILL_SECONDS = 0.05
# A lane that is refilled later than this may hold half as much. 0026
SLOW_REFILL_SECONDS = 0.2

# Attempts

# More than the endpoints that one process is expected to send to; an entry takes 1.5 kB. 0038
PREPARED_TARGETS = 32_768
# A bug in an attempt must not be repeated at once. 0011
PAUSE_AFTER_CRASH_SECONDS = 60.0

# Milestones and results

# Milestones in one transaction; a single request may have more. 0041
MILESTONES_AT_ONCE = 500
# Of several requests, while another transaction could begin at once: on PostgreSQL the service then
# works on one batch while the database works on the other. 0066
MILESTONES_WHILE_FREE = 50
# A group is written in one transaction; with larger ones a result costs less. 0068
RESULTS_AT_ONCE = 250
# SQLite writes milestones and results in turns. If a turn had fewer results than milestones, more
# deliveries would be accepted than sent, and most would be claimed instead of handed over. 0065
RESULTS_AT_ONCE_ALONE = 500
# From this many assignments in memory on, results are written in groups. 0026
BUSY_FROM = 32
# How long a group waits to become full. 0026
LONGEST_WAIT_SECONDS = 0.05
# SQLite has one writer, for which incoming milestones wait. 0041
LONGEST_WAIT_ALONE_SECONDS = 0.02
# Attempts stop when this many times the attempts in flight are unrecorded. 0038
UNRECORDED_PER_ATTEMPT = 4
# Short enough to continue soon after an outage, long enough not to add load. 0011
PAUSE_AFTER_FAILURE_SECONDS = 0.5
# Contention ends with the other transaction. 0041
PAUSE_AFTER_CONTENTION_SECONDS = 0.02
# After this many failures a group is split, because one of its results may be the cause. 0035
GROUP_TRIES = 5
# After this many failures a result is set aside, and its attempt counts as interrupted. 0035
SINGLE_RESULT_TRIES = 10
# A process that stops tries for this long to record its results. 0011
SHUTDOWN_RECORDING_SECONDS = 5.0

# The watchdog

# Short enough to detect a stall within three seconds. 0035
WATCHDOG_SECONDS = 0.5
# Checks are counted instead of seconds, so that a suspended process has time to continue. 0035
CHECKS_UNTIL_STALLED = 4

# Maintenance: the steps are small enough not to delay deliveries

# Jobs that advance in one round, so that a long one does not delay the others. 0003
BULK_RETRY_JOBS = 50
# Deliveries in one step of a job, in one transaction. 0003
BULK_RETRY_DELIVERIES = 500
# Projects whose access has ended, in one transaction. 0013
EXPIRED_PROJECTS = 100
# Rows of deleted endpoints, in one transaction. 0008
PURGED_ROWS = 1_000
# Accounts whose erasure advances in one round, so that a large one does not delay others. 0056
ERASED_ACCOUNTS = 20
# Rows of each kind that an erasure removes in one transaction. 0056
ERASED_ROWS = 250
# Maintenance jobs of one process that run at a time; each may use a connection. 0045
MAINTENANCE_JOBS_AT_ONCE = 4
# Accounts or projects of an older version that a search finds from then on, at a time. 0056
NAMED_AT_ONCE = 500
# Listeners that have not been read for a long time, in one transaction. 0020
UNSERVED_LISTENERS_AT_ONCE = 20
# Rows of history that are deleted in one transaction. 0002
EXPIRED_ROWS_AT_ONCE = 250
# Pages that SQLite gives back to the file system in one step. 0004
PAGES_AT_ONCE = 50


class BadTuning(Exception):
    """Numbers in tuning.py contradict each other."""


def broken_relations() -> list[str]:
    """The relations between the numbers above that do not hold."""
    relations = {
        "a lease outlives two heartbeats": HEARTBEATS_PER_LEASE >= 3,
        "idle lanes are looked at before they are let go": (
            IDLE_LANE_CHECK_SECONDS < IDLE_LANE_KEPT_SECONDS
        ),
        "nothing in memory outlives a lease": LONGEST_IN_MEMORY_SECONDS < LEASE_SECONDS,
        "a late answer is older than what may be in memory, and the lease is older still": (
            LONGEST_IN_MEMORY_SECONDS < LATEST_ANSWER_SECONDS < LEASE_SECONDS
        ),
        "a full scan comes before a poll": LONGEST_WITHOUT_SCAN_SECONDS < POLL_SECONDS,
        "workers that share poll more often than one alone": POLL_SECONDS <= POLL_ALONE_SECONDS,
        "a quick refill is quicker than a slow one": QUICK_REFILL_SECONDS < SLOW_REFILL_SECONDS,
        "an endpoint's first share is no less than its attempts": FIRST_SHARE_PER_SLOT >= 1,
        "memory holds more than is in flight": (
            1 < HELD_AT_FIRST_PER_ATTEMPT <= HELD_PER_ATTEMPT and HELD_PER_SLOT > 1
        ),
        "there is room for what is in flight among the unrecorded": UNRECORDED_PER_ATTEMPT > 1,
        "waiting batches may be larger": MILESTONES_WHILE_FREE < MILESTONES_AT_ONCE,
        "on SQLite results keep up with milestones": RESULTS_AT_ONCE_ALONE >= MILESTONES_AT_ONCE,
        "groups on SQLite wait less": LONGEST_WAIT_ALONE_SECONDS <= LONGEST_WAIT_SECONDS,
        "a group is written before its memory is stale": (
            LONGEST_WAIT_SECONDS < LONGEST_IN_MEMORY_SECONDS
        ),
        "a stop tries to record more than once": PAUSE_AFTER_FAILURE_SECONDS
        < SHUTDOWN_RECORDING_SECONDS,
        "a stall is noticed after what may be in memory has gone back": (
            WATCHDOG_SECONDS * CHECKS_UNTIL_STALLED > LONGEST_IN_MEMORY_SECONDS
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
