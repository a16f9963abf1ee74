"""Milestones from several reporters at once, over HTTP, and what the service acknowledged."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import httpx2

PATIENCE_SECONDS = 30.0
PAUSE_AFTER_FAILURE_SECONDS = 0.05


@dataclass(slots=True)
class Load:
    """Each reporter finishes its own projects over and over, and repeats what was not answered.

    `pace` is the pause between two reports of a reporter.
    """

    base_urls: Sequence[str]
    key: str
    projects: Sequence[Sequence[str]]
    pace: float = 0.03
    acknowledged: set[str] = field(default_factory=set)
    answers: Counter[int] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _reports_to: dict[int, Sequence[str]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        for number, projects in enumerate(self.projects):
            thread = threading.Thread(target=self._report, args=(number, projects))
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()

    def wait_for(self, more: int) -> None:
        """Wait until this number of further events is acknowledged."""
        wanted, deadline = len(self.acknowledged) + more, time.monotonic() + PATIENCE_SECONDS
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < deadline, f"{self.answers} {self.unexpected}"
            self.pause()

    def move_to(self, *base_urls: str) -> None:
        """As a proxy that is told to: when this returns, nothing is under way elsewhere."""
        self.base_urls = base_urls
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(self._reports_to.get(n) is not base_urls for n in range(len(self.projects))):
            assert time.monotonic() < deadline, f"{self.answers} {self.unexpected}"
            self.pause()

    def pause(self) -> None:
        self._stopped.wait(0.005)

    def _report(self, number: int, projects: Sequence[str]) -> None:
        clients: list[httpx2.Client] = []
        turn = number
        batch = 0
        try:
            while not self._stopped.is_set():
                if self._reports_to.get(number) is not self.base_urls:
                    clients = self._moved(number, clients)
                if self._sent(
                    clients[turn % len(clients)], _finished(f"{number}-{batch}", projects)
                ):
                    batch += 1
                    self._stopped.wait(self.pace)
                else:
                    turn += 1
                    self._stopped.wait(PAUSE_AFTER_FAILURE_SECONDS)
        finally:
            for client in clients:
                client.close()

    def _moved(self, number: int, clients: Sequence[httpx2.Client]) -> list[httpx2.Client]:
        for client in clients:
            client.close()
        base_urls = self.base_urls
        self._reports_to[number] = base_urls
        return [self._client(url) for url in base_urls]

    def _client(self, url: str) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx2.Client(base_url=url, headers=headers, timeout=20, trust_env=False)

    def _sent(self, client: httpx2.Client, milestones: list[dict[str, str]]) -> bool:
        try:
            answer = client.post("/v1/milestones", json={"milestones": milestones})
        except httpx2.TransportError:
            with self._lock:
                self.answers[0] += 1
            return False
        with self._lock:
            self.answers[answer.status_code] += 1
            return self._kept(answer)

    def _kept(self, answer: httpx2.Response) -> bool:
        if answer.status_code == 503 and "retry-after" in answer.headers:
            return False
        results: list[Any] = answer.json()["results"] if answer.is_success else []
        if not results or not all(each["accepted"] for each in results):
            self.unexpected.append(f"{answer.status_code} {answer.headers} {answer.text}")
            return False
        self.acknowledged.update(each["eventId"] for each in results if "eventId" in each)
        return True


def _finished(name: str, projects: Sequence[str]) -> list[dict[str, str]]:
    return [
        {"reportId": f"{name}-{place}-{status}", "projectId": project, "status": status}
        for place, project in enumerate(projects)
        for status in ("exporting", "completed")
    ]
