"""Values of closed lists, which are stored as small numbers.

The domain defines each list. Its order is part of the schema: new values come last.
"""

from collections.abc import Iterable, Mapping
from itertools import count

from cuepost.domain.attempt import Outcome, TlsFault
from cuepost.domain.delivery import CancelReason, DeliveryStatus, Trigger
from cuepost.domain.event import SilenceReason
from cuepost.domain.event_catalog import CATALOG
from cuepost.domain.project import Origin, ProjectKind, ProjectStatus, Stage


class Codes:
    """The number of each value is its position in the list, starting at 1.

    A `retired` code is never written again, and is read as the value that replaced it.
    """

    def __init__(self, listed: Iterable[str], retired: Iterable[tuple[int, str]] = ()) -> None:
        self.listed = tuple(listed)
        self.retired: dict[int | None, str | None] = dict(retired)
        unused = (code for code in count(1) if code not in self.retired)
        self.codes: dict[str | None, int | None] = {None: None}
        self.codes |= dict(zip(self.listed, unused, strict=False))
        self.meanings: dict[int | None, str | None] = {
            code: value for value, code in self.codes.items()
        }
        self.meanings |= self.retired

    def __getitem__(self, value: str | None) -> int | None:
        return self.codes[value]


STATUS = Codes(DeliveryStatus)
TRIGGER = Codes(Trigger)
CANCEL_REASON = Codes(CancelReason)
EVENT_TYPE = Codes(entry.name for entry in CATALOG)
# 5 was "dns_error", which revealed to accounts which names exist in the internal network.
OUTCOME = Codes(Outcome, retired=[(5, Outcome.BLOCKED_DESTINATION)])
TLS_FAULT = Codes(TlsFault)
SILENCE_REASON = Codes(SilenceReason)
PROJECT_STATUS = Codes(ProjectStatus)
PROJECT_KIND = Codes(ProjectKind)
ORIGIN = Codes(Origin)
STAGE = Codes(Stage)

# The codes of enumerations; statements convert such parameters by their type.
BY_TYPE: Mapping[type, Codes] = {
    DeliveryStatus: STATUS,
    Trigger: TRIGGER,
    CancelReason: CANCEL_REASON,
    Outcome: OUTCOME,
    TlsFault: TLS_FAULT,
    SilenceReason: SILENCE_REASON,
    ProjectStatus: PROJECT_STATUS,
    ProjectKind: PROJECT_KIND,
    Origin: ORIGIN,
    Stage: STAGE,
}
