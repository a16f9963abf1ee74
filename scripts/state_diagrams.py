"""Writes docs/concepts/states.md from the state machines in the domain.

Run it after a change of a state machine; `--check` only says whether the page is up to date.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from cuepost.domain.delivery import FINAL, TRANSITIONS, CancelReason
from cuepost.domain.event_catalog import BY_STATUS
from cuepost.domain.project import MOVES, STAGE_OF, ProjectStatus

PAGE = Path(__file__).parents[1] / "docs" / "concepts" / "states.md"

TEMPLATE = """\
# States

<!-- Written by scripts/state_diagrams.py from the tables in the code; change those instead. -->

The tables `MOVES` in `domain/project.py` and `TRANSITIONS` in `domain/delivery.py` define these
state changes; the diagrams are generated from them.

## A project

The pipeline reports most changes as milestones; the owner of the project exports and cancels. Any
other change is refused as `illegal_transition`, and nothing is stored.

{project_diagram}

| status | stage | event |
| --- | --- | --- |
{project_rows}

A project that failed or was cancelled can be processed or exported again. The files of the last
completed export stay its result until another export completes.

A deleted project keeps its last status. Calls that name it answer 410 `project_deleted`, and its
milestones change nothing.

## A delivery

A delivery is one event on its way to one endpoint. It is recorded as `cancelled` from the start
when its endpoint is disabled or the account's access is closed at that moment, so that the history
shows it.

{delivery_diagram}

An ended delivery ({final}) can be sent again by hand: the same event, with a new budget.
A cancelled delivery has a reason: {reasons}.
`deliveredAt` is the time of the first acknowledgement. It stays when the delivery is sent again,
whatever the result.
An attempt that is in flight when its delivery is stopped may still finish; its outcome is recorded,
but no further attempt follows.
"""


def page() -> str:
    return TEMPLATE.format(
        project_diagram=_diagram(_project_lines()),
        project_rows="\n".join(map(_project_row, ProjectStatus)),
        delivery_diagram=_diagram(_delivery_lines()),
        final=_listed(FINAL),
        reasons=_listed(CancelReason),
    )


def _diagram(lines: Iterable[str]) -> str:
    drawn = "\n".join(f"    {line}" for line in lines)
    return f"```mermaid\nstateDiagram-v2\n{drawn}\n```"


def _project_lines() -> Iterable[str]:
    yield "[*] --> queued"
    for status in ProjectStatus:
        for to in ProjectStatus:
            if to in MOVES[status]:
                yield f"{status} --> {to}"


def _project_row(status: ProjectStatus) -> str:
    stage = f"`{STAGE_OF[status]}`" if status in STAGE_OF else "unchanged"
    event = f"`{BY_STATUS[status].name}`" if status in BY_STATUS else "–"
    return f"| `{status}` | {stage} | {event} |"


def _delivery_lines() -> Iterable[str]:
    yield "[*] --> pending: event for a subscribed endpoint"
    yield "[*] --> cancelled: endpoint is disabled, or access is closed"
    for (status, cause), to in TRANSITIONS.items():
        yield f"{status} --> {to}: {cause}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        if current != page():
            print(f"{PAGE.name} is stale; run `python scripts/state_diagrams.py`", file=sys.stderr)
            return 1
    else:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
