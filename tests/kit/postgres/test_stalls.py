"""A process may stall at any moment of a transaction: the server ends the transaction and frees its locks."""

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import waiting

from holdfast.events.resources import Tx
from holdfast.events.service import EVENTS
from tests.helpers.data_directories import wait_until
from tests.helpers.events_service import unlimited

LOCKED = "select count(*)::int from pg_locks where locktype = 'advisory' and objid = 4711"
LOOKS = 10
"""How often one looks whether the server has done what it was just sent: all of it well within the idle timeout."""


@pytest.mark.parametrize("is_read", [True, False], ids=["an answer was read", "no answer was read"])
def test_a_process_that_stalls_as_soon_as_it_has_sent_a_statement_loses_its_locks_and_runs_it_again(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_read: bool
) -> None:
    monkeypatch.setattr(waiting, "MAX_BUSY_TIME", 0)  # a turn ends whenever something was sent
    database = EVENTS.database(unlimited(database_url, tmp_path))
    notified = asyncio.Event()
    tries = 0

    async def lock(tx: Tx) -> None:
        nonlocal tries
        tries += 1
        await tx.run("set local idle_in_transaction_session_timeout = '2s'")
        await (tx.value if is_read else tx.run)("select pg_advisory_xact_lock(4711)")
        await notified.wait()
        await tx.value("select 1")

    with psycopg.connect(database_url, autocommit=True) as connection, asyncio.Runner() as runner:
        runner.run(database.pool.open())
        locking = runner.get_loop().create_task(database.transact(lock))
        while not any(_is_locked(connection) for _ in range(LOOKS)):
            assert not locking.done()
            _a_turn(runner.get_loop())
        # Nothing of the process goes on from here.
        wait_until(lambda: not _is_locked(connection))

        notified.set()
        runner.run(_wait_for_end(locking))
        runner.run(database.pool.close())
    assert tries == 2


def _is_locked(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute(LOCKED).fetchone()
    return row is not None and row[0] > 0


def _a_turn(loop: asyncio.AbstractEventLoop) -> None:
    """Let the process do what it can do without waiting, once."""
    loop.call_soon(loop.stop)
    loop.run_forever()


async def _wait_for_end(task: asyncio.Task[Any]) -> None:
    await task
