"""Connections to databases of tests, which the next test takes over: a new one costs more than most tests do.

A new session of PostgreSQL reads its catalogs, compiles functions and plans statements again. One that is taken over is
as new for who uses it: with default settings, in no transaction, without locks, listeners and tables of its own.
"""

import select
from collections import defaultdict
from typing import Any, LiteralString, NamedTuple, Self

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import ConnStatus, PipelineStatus, TransactionStatus
from psycopg.pq import PGconn as Connecting
from psycopg.pq.abc import PGconn

AS_NEW: LiteralString = """
    set session authorization default; reset all; unlisten *; select pg_advisory_unlock_all(); discard temp;
    set application_name = 'kept by a test'
"""
"""All that `discard all` does, except for plans, and statements that are prepared already.

The session also loses its name, by which processes count the listeners of a service.
"""

NAME: LiteralString = "reset application_name"
"""Gives a session the name with which it began."""

MAX_SESSIONS = 2
"""How many are kept of those that are used in the same way: as many as a pool opens at once."""

MAX_STATEMENTS = 2_000
"""How many statements a session keeps prepared: all that tests run."""


class _Session(NamedTuple):
    """An unused session, with the statements that are prepared in it."""

    pgconn: PGconn
    prepared: Any


_sessions: dict[str, dict[str, list[_Session]]] = defaultdict(lambda: defaultdict(list))
"""Sessions by their database, and by the options with which they began."""

_CLOSED = Connecting.connect_start(b"host=/nowhere")
_CLOSED.finish()


class ReusedConnection(AsyncConnection[Any]):
    """A connection whose session is kept when it is closed."""

    _use: tuple[str, str] | None = None

    @classmethod
    async def connect(cls, conninfo: str = "", **options: Any) -> Self:
        use = repr(options)
        connection = None
        while connection is None and (sessions := _sessions[conninfo][use]):
            connection = await cls._take_over(sessions.pop(), options)
        if connection is None:
            connection = await super().connect(conninfo, **options)
        connection._use = (conninfo, use)
        connection.prepare_threshold, connection.prepared_max = 1, MAX_STATEMENTS
        return connection

    @classmethod
    async def _take_over(cls, session: _Session, options: dict[str, Any]) -> Self | None:
        """A connection of a session that was kept; None if the server has ended it."""
        if not _is_idle(session.pgconn):
            session.pgconn.finish()
            return None
        connection = cls(session.pgconn)
        connection._prepared = session.prepared
        connection.cursor_factory = options.get("cursor_factory", connection.cursor_factory)
        await connection.set_autocommit(True)
        try:
            await connection.execute(NAME, prepare=False)
        except psycopg.Error:
            session.pgconn.finish()
            return None
        except BaseException:
            session.pgconn.finish()
            raise
        return connection

    async def close(self) -> None:
        if self._use is None or self._pipeline or self.lock.locked() or not _is_idle(self.pgconn):
            return await super().close()
        url, use = self._use
        if len(_sessions[url][use]) >= MAX_SESSIONS:
            return await super().close()
        try:
            # Now, not when it is taken over: a session that listens but is never read blocks the server in the end.
            await self.execute(AS_NEW)
        except psycopg.Error:
            return await super().close()
        except BaseException:
            await super().close()
            raise
        _sessions[url][use].append(_Session(self.pgconn, self._prepared))
        self._closed, self.pgconn = True, _CLOSED
        return None


def session_pids(url: str) -> list[int]:
    """The process numbers of the unused sessions of a database."""
    return [session.pgconn.backend_pid for sessions in _sessions[url].values() for session in sessions]


def end(url: str) -> None:
    """End the unused sessions of a database."""
    for sessions in _sessions.pop(url, {}).values():
        for session in sessions:
            session.pgconn.finish()


def _is_idle(pgconn: PGconn) -> bool:
    """Whether a session waits for a statement, and its server has nothing to say, such as that it ends."""
    return (
        pgconn.status == ConnStatus.OK
        and pgconn.transaction_status == TransactionStatus.IDLE
        and pgconn.pipeline_status == PipelineStatus.OFF
        and not _has_sent_bytes(pgconn.socket)
    )


def _has_sent_bytes(socket: int) -> bool:
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))
