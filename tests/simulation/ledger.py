"""What the service has acknowledged, written down beside it: the history checker judges by this."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

from cuepost.testing import Sent
from tests.support.history_checker import History
from tests.support.history_facts import (
    ENDLESS,
    Look,
    SecretLife,
    Seen,
    Stop,
    StoredDelivery,
)
from tests.support.stored_history import Found, stored_deliveries


@dataclass(slots=True)
class Ledger:
    """Instants are those of time as it really passes; `until` is by the service's clock."""

    promised: set[tuple[str, str]] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    lives: dict[str, list[SecretLife]] = field(default_factory=lambda: defaultdict(list))
    project_of: dict[str, str] = field(default_factory=dict)
    webhook_of: dict[str, str] = field(default_factory=dict)
    stops: list[Stop] = field(default_factory=list)
    windows: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    owners: dict[str, str] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)
    shown: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    kept: dict[str, StoredDelivery] = field(default_factory=dict)

    def belongs(self, account_id: UUID, *ids: UUID) -> None:
        self.owners.update((str(each), str(account_id)) for each in ids)

    def created(self, webhook_id: UUID, url: str, secret: str, at: datetime) -> None:
        self.webhook_of[url] = str(webhook_id)
        self.lives[str(webhook_id)].append(SecretLife(secret, at.timestamp()))

    def moved(self, webhook_id: UUID, url: str) -> None:
        self.webhook_of[url] = str(webhook_id)

    def rotated(self, webhook_id: UUID, secret: str, at: datetime, until: datetime) -> None:
        lives = self.lives[str(webhook_id)]
        lives[-1] = replace(lives[-1], until=until.timestamp())
        lives.append(SecretLife(secret, at.timestamp()))

    def overlap_ended(self, webhook_id: UUID, at: datetime) -> None:
        lives = self.lives[str(webhook_id)]
        lives[:-1] = [replace(life, cut=min(life.cut, at.timestamp())) for life in lives[:-1]]

    def stopped(self, webhook_id: UUID, at: datetime) -> None:
        self.stops.append(Stop(at.timestamp(), webhook_id=str(webhook_id)))

    def started(self, webhook_id: UUID, at: datetime) -> None:
        self.stops = [
            replace(stop, until=at.timestamp())
            if stop.webhook_id == str(webhook_id) and stop.until == ENDLESS
            else stop
            for stop in self.stops
        ]

    def deleted(self, webhook_id: UUID, at: datetime) -> None:
        self.gone.add(str(webhook_id))
        self.stopped(webhook_id, at)

    def project_deleted(self, project_id: UUID, at: datetime) -> None:
        self.stops.append(Stop(at.timestamp(), project_id=str(project_id)))

    def access_set(self, project_id: UUID, until: datetime | None, at: datetime) -> None:
        ends = ENDLESS if until is None else until.timestamp()
        self.windows[str(project_id)].append((at.timestamp(), ends))

    def happened(self, event_id: UUID, project_id: UUID, webhook_ids: set[UUID]) -> None:
        self.project_of[str(event_id)] = str(project_id)
        self.promised |= {(str(event_id), str(each)) for each in webhook_ids}

    def looked(self, account_id: UUID, kind: str, *ids: UUID | None) -> None:
        known = tuple(str(each) for each in ids if each is not None)
        self.looks.append(Look(str(account_id), kind, known))

    def keep(self, found: Found) -> None:
        """Before something is forgotten: from then on no other caller knows of it."""
        self.kept.update((each.id, each) for each in stored_deliveries(found))

    def history(self, sent: Iterable[Seen], found: Found, **more: Any) -> History:
        """`found` is the store at the end; deliveries in it count as they are there."""
        self.keep(found)
        return History(
            seen=list(sent),
            deliveries=[each for each in self.kept.values() if each.webhook_id not in self.gone],
            promised=self.promised,
            gone=self.gone,
            lives=self.lives,
            stops=[*self.stops, *self._expiries()],
            project_of=self.project_of,
            owners=self.owners,
            looks=self.looks,
            shown={place: "\n".join(texts) for place, texts in self.shown.items()},
            **more,
        )

    def seen(self, sent: Sent, clock: datetime) -> Seen:
        return Seen(
            at=sent.at.timestamp(),
            webhook_id=self.webhook_of[sent.request.url.text],
            headers=dict(sent.request.headers),
            body=sent.request.body,
            answered=sent.answer.status,
            ended_at=sent.ended_at.timestamp() if sent.ended_at else None,
            clock=clock.timestamp(),
        )

    def _expiries(self) -> list[Stop]:
        """Of each access window the time after its end, until another one was given."""
        return [
            Stop(given, following, project_id=project_id, due=ends)
            for project_id, windows in self.windows.items()
            for (given, ends), (following, _) in pairwise([*windows, (ENDLESS, ENDLESS)])
        ]
