"""Keeps idle connections for the next request to the same receiver."""

from time import perf_counter

from cuepost.adapters.http_connection import HttpConnection, Receiver


class ConnectionPool:
    """The most recently used connection is taken first; beyond `most`, an old one is closed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._closed = False
        # In the order in which the first connection of each receiver became idle.
        self._idle: dict[Receiver, list[HttpConnection]] = {}

    def take(self, receiver: Receiver) -> HttpConnection | None:
        while connections := self._idle.get(receiver):
            connection = connections.pop()
            self._count -= 1
            if not connections:
                del self._idle[receiver]
            if perf_counter() < connection.expires_at:
                return connection
            connection.abort()
        return None

    def keep(self, connection: HttpConnection) -> None:
        if self._closed or perf_counter() >= connection.expires_at:
            connection.abort()
            return
        receiver = connection.receiver
        connections = self._idle.get(receiver)
        if connections is None:
            self._idle[receiver] = [connection]
        else:
            connections.append(connection)
        self._count += 1
        if self._count > self._most:
            next(iter(self._idle.values()))[0].abort()

    def forget(self, connection: HttpConnection) -> None:
        """Drops a connection that has ended; it need not be in the pool."""
        connections = self._idle.get(connection.receiver, [])
        if connection in connections:
            connections.remove(connection)
            self._count -= 1
            if not connections:
                del self._idle[connection.receiver]

    def close(self) -> None:
        """A connection in use is closed when `keep` gets it."""
        self._closed = True
        for connections in list(self._idle.values()):
            for connection in list(connections):
                connection.abort()
