"""Connections that rest between two requests to the same receiver."""

from time import perf_counter

from cuepost.adapters.http_connection import HttpConnection, Receiver


class ConnectionPool:
    """The connection used last is used next; beyond `most`, one that rested long goes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._closed = False
        # A receiver comes last when its first connection comes to rest.
        self._resting: dict[Receiver, list[HttpConnection]] = {}

    def take(self, receiver: Receiver) -> HttpConnection | None:
        while connections := self._resting.get(receiver):
            connection = connections.pop()
            self._count -= 1
            if not connections:
                del self._resting[receiver]
            if perf_counter() < connection.expires_at:
                return connection
            connection.abort()
        return None

    def keep(self, connection: HttpConnection) -> None:
        if self._closed or perf_counter() >= connection.expires_at:
            connection.abort()
            return
        receiver = connection.receiver
        connections = self._resting.get(receiver)
        if connections is None:
            self._resting[receiver] = [connection]
        else:
            connections.append(connection)
        self._count += 1
        if self._count > self._most:
            next(iter(self._resting.values()))[0].abort()

    def forget(self, connection: HttpConnection) -> None:
        """It is over; if it rested here, it does so no more."""
        connections = self._resting.get(connection.receiver, [])
        if connection in connections:
            connections.remove(connection)
            self._count -= 1
            if not connections:
                del self._resting[connection.receiver]

    def close(self) -> None:
        """Those in use are ended when they would come to rest."""
        self._closed = True
        for connections in list(self._resting.values()):
            for connection in list(connections):
                connection.abort()
