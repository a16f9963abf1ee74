"""UUIDs that are made, compared and written several times as fast as those of the standard library.

They come with the PostgreSQL driver, are UUIDs like any other, and equal those of the same value.
The busiest code handles a dozen of them for each delivery.
"""

from uuid import UUID

from asyncpg.pgproto import pgproto

ID_BYTES = 16


def id_from(sixteen_bytes: bytes) -> UUID:
    made: UUID = pgproto.UUID(sixteen_bytes)
    return made
