"""Processes that send mails by a mail server of the test's own, for an event with many people."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.stored_order import register_organizer_with_event
from tests.helpers.processes import Process, running_processes, use_mail_server
from tests.helpers.smtp import MailServer, mail_server


@contextmanager
def mail_senders(
    database_url: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch, count: int = 2
) -> Generator[tuple[MailServer, list[Process]]]:
    """A mail server, and processes that send mails by it."""
    with mail_server() as server:
        use_mail_server(server, monkeypatch)
        with running_processes(database_url, data_dir, count) as processes:
            yield server, processes


async def publish(process: Process, people: int) -> tuple[str, int]:
    """An organizer's key and an event with seats for half of the people, and a waiting list for some of the others."""
    return await register_organizer_with_event(process, capacity=people // 2, waitinglist_capacity=people)


async def wait_for_mails(server: MailServer, count: int) -> None:
    """Wait until this many different mails have arrived."""
    loop, more = asyncio.get_running_loop(), asyncio.Event()
    server.arrived = lambda: loop.call_soon_threadsafe(more.set)
    while len(server.copies) < count:
        more.clear()
        if len(server.copies) < count:
            await more.wait()
