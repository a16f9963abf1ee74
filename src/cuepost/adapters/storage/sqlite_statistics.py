"""Fixed statistics for SQLite's planner.

Without statistics it assumes that an account has only a few rows, and reads all of them instead of
looking up a project. Statistics of the real rows would change plans at unforeseen moments. For each
index, they hold the number of rows of the table, and how many rows share its first column, its
first two columns, and so on.
"""

import sqlite3

_DELIVERIES = "1000000 100000"
_QUEUE = "100000 10000"

STATISTICS = {
    ("artifacts", "artifacts"): "300000 30000 3 1",
    ("attempts", "attempts"): "1000000 100000 2 2 1",
    ("deliveries", "deliveries"): f"{_DELIVERIES} 1",
    ("deliveries", "deliveries_by_account_event_type_id"): f"{_DELIVERIES} 20000 1",
    ("deliveries", "deliveries_by_account_endpoint_status_id"): f"{_DELIVERIES} 10000 3000 1",
    ("deliveries", "deliveries_not_delivered"): "10000 1000 500 1",
    ("events", "events"): "500000 50000 1",
    ("events", "events_by_account_project_id_id"): "500000 50000 4 1",
    ("events", "events_by_account_type_id"): "500000 50000 10000 1",
    ("projects", "projects"): "100000 10000 1",
    ("projects", "projects_by_access_expires_at"): "10000 1",
    ("projects", "projects_by_id"): "100000 1",
    ("projects", "projects_by_search_name"): "100000 10000 2 1",
    ("projects", "projects_without_search_name"): "1000 1",
    ("queue", "queue"): f"{_QUEUE} 1",
    ("queue", "queue_by_due_at"): "100000 2",
    ("queue", "queue_by_lane"): "100000 1000 300 1",
    ("queue", "queue_by_status"): f"{_QUEUE} 3000 1",
    ("queue", "queue_by_endpoint_status"): f"{_QUEUE} 1000 300 1",
    ("queue", "queue_in_flight"): "1000 1000",
    ("reports", "reports"): "1000000 100000 1",
    ("reports", "reports_by_created_at"): "1000000 10",
}


def install(driver: sqlite3.Connection) -> None:
    """They apply to this connection and to every later one."""
    # Only ANALYZE can create the table of statistics; alembic_version is the smallest table.
    driver.execute("ANALYZE alembic_version")
    rows = driver.execute("SELECT tbl, idx, stat FROM sqlite_stat1 WHERE tbl <> 'alembic_version'")
    if {(table, index): stat for table, index, stat in rows} != STATISTICS:
        driver.execute("BEGIN IMMEDIATE")
        driver.execute("DELETE FROM sqlite_stat1")
        wanted = [(*which, stat) for which, stat in STATISTICS.items()]
        driver.executemany("INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", wanted)
        driver.execute("COMMIT")
    driver.execute("ANALYZE sqlite_master")
