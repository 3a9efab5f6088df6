"""Programs that we did not write verify a log that the service makes while it is killed, and refuse each forgery.

`make soak` makes one of 100,000 arrivals.
"""

import asyncio
import contextlib
import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest

from benchmarks import load
from holdfast.events.service import EVENTS
from holdfast_verify.formats.proof_file import parse_proof_file
from holdfast_verify.formats.tree import leaf_hash, parse_bundle
from tests.events.log.verification import verify
from tests.faults.stored_order import register_organizer_with_event
from tests.helpers.data_directories import migrated_database
from tests.helpers.events_service import eventually
from tests.helpers.processes import Process, running_processes
from tests.models.history import crash
from tests.models.order_in_database import pending_rows
from tests.models.published_log import PublishedLog, read_log
from tests.verify.formats.verifiers import (
    LogRefused,
    files_with_checkpoint,
    replace_files,
    verify_with_aics,
    verify_with_go,
    verify_with_sigstore,
)

SOAK = "HOLDFAST_SOAK" in os.environ
ARRIVALS = 100_000 if SOAK else 3_000
FAULTS = 24 if SOAK else 3
"""How often a process of the service, or PostgreSQL, is killed: in turn, at equal distances."""

CONNECTIONS = 48
LEAVING = 40
"""One of this many people leaves as soon as the registration is accepted, some of them before they have a number."""

RETRY_SECONDS = 0.05
HOST = "http://events.example"


class RegisteringPeople:
    """People who register for one event, each until the answer is 202. Some of them leave again.

    promises    the times that were promised, by commitment
    """

    def __init__(self, processes: list[Process], key: str, event_id: int) -> None:
        self.promises: dict[str, str] = {}
        self._processes, self._key, self._event_id = processes, key, event_id
        self._numbers = iter(range(ARRIVALS + ARRIVALS // LEAVING))
        self._milestones: dict[int, asyncio.Event] = {}

    async def run(self) -> None:
        await asyncio.gather(*(self._keep_on(place) for place in range(CONNECTIONS)))

    async def reach(self, count: int) -> None:
        """Wait until a number of people were accepted."""
        if len(self.promises) < count:
            await self._milestones.setdefault(count, asyncio.Event()).wait()

    async def _keep_on(self, place: int) -> None:
        client = _Client(self._processes, place)
        for number in self._numbers:
            body = {"registration": {"event_id": self._event_id, "email": f"n{number}@example.com"}}
            message = load.request("POST", "/api/registrations", self._key, json.dumps(body).encode())
            answer = json.loads(await client.insist(message, 202))
            promise = json.loads(answer["receipt"]["promise"])
            self.promises[promise["person"]] = promise["at"]
            if milestone := self._milestones.get(len(self.promises)):
                milestone.set()
            if number % LEAVING == 0:
                await client.insist(load.request("DELETE", answer["next"]["url"], self._key), 204, 404)
        client.close()


class _Client:
    """Sends a request to one process after the other, until one of them answers."""

    def __init__(self, processes: list[Process], place: int) -> None:
        self._ports = itertools.cycle([urlsplit(process.url).port or 80 for process in processes])
        self._connection: load.Connection | None = None
        for _ in range(place % len(processes)):
            next(self._ports)

    async def insist(self, message: bytes, *statuses: int) -> bytes:
        """The body of the answer with one of these statuses. Only 503 is another one."""
        while True:
            try:
                if self._connection is None or not self._connection.is_open:
                    self._connection = await load.connect(next(self._ports))
                status, body = await self._connection.send(message)
            except OSError:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if status in statuses:
                return body
            assert status == 503, body
            await asyncio.sleep(RETRY_SECONDS)

    def close(self) -> None:
        if self._connection:
            self._connection.close()


async def make_log(database_url: str, directory: Path) -> tuple[PublishedLog, dict[str, str]]:
    """Make a log while everything is killed in turn, and download it, with a head that it had before.

    Returns it, and the times that were promised, by commitment.
    """
    with running_processes(database_url, directory.parent, 2, base_url=HOST) as processes:
        seats, places = ARRIVALS * 6 // 10, ARRIVALS
        key, event_id = await register_organizer_with_event(processes[0], capacity=seats, waitinglist_capacity=places)
        people, path = RegisteringPeople(processes, key, event_id), f"/log/events/{event_id}"

        async def is_back() -> bool:
            with contextlib.suppress(psycopg.OperationalError):
                return await asyncio.to_thread(pending_rows, database_url) >= 0
            return False

        async def kill() -> None:
            for number, fault in zip(range(FAULTS), itertools.cycle((0, None, 1)), strict=False):
                await people.reach(ARRIVALS * (number + 1) // (FAULTS + 1))
                if fault is None:
                    await asyncio.to_thread(crash, database_url)
                    await eventually(is_back)
                    continue
                if number <= FAULTS // 2:
                    await eventually(partial(save_head, processes[fault].url + path, directory))
                await asyncio.to_thread(processes[fault].kill)
                await asyncio.to_thread(processes[fault].start)

        await asyncio.gather(people.run(), kill())

        async def is_all_signed() -> bool:
            return await asyncio.to_thread(pending_rows, database_url) == 0

        await eventually(is_all_signed)
        return await read_log(processes[0].url + path, directory, [1, ARRIVALS // 3, ARRIVALS]), people.promises


async def save_head(url: str, directory: Path) -> bool:
    """Save the head of a log for later. Returns whether it was answered."""
    answer = await asyncio.to_thread(httpx2.get, f"{url}/checkpoint")
    if answer.status_code == 200:
        (directory / "checkpoint").write_bytes(answer.content)
    return answer.status_code == 200


def entry_changed(log: Path) -> dict[str, bytes]:
    path = "tile/entries/000"
    return {path: (log / path).read_bytes().replace(b'"number":1,', b'"number":2,', 1)}


def entry_and_its_hash_changed(log: Path) -> dict[str, bytes]:
    changed = entry_changed(log)
    return {**changed, "tile/0/000": b"".join(map(leaf_hash, parse_bundle(changed["tile/entries/000"])))}


def hash_tile_changed(log: Path) -> dict[str, bytes]:
    path = "tile/0/003"
    return {path: (log / path).read_bytes()[:-32] + bytes(32)}


def checkpoint_changed(log: Path) -> dict[str, bytes]:
    note = (log / "checkpoint").read_text("utf-8")
    root = note.split("\n")[2]
    return files_with_checkpoint(log, note.replace(root, root[::-1][1:] + "=", 1))


def end_cut_off(log: Path) -> dict[str, bytes]:
    """The service shows an older head than it did before."""
    return {
        "checkpoint": (log / "old-checkpoint").read_bytes(),
        "old-checkpoint": (log / "checkpoint").read_bytes(),
    }


def last_entry_cut_off(log: Path) -> dict[str, bytes]:
    [bundle] = log.glob("tile/entries/*.p/*")
    entries = bundle.read_bytes()
    return {str(bundle.relative_to(log)): entries[: -2 - len(parse_bundle(entries)[-1])]}


def proof_cut_off(log: Path) -> dict[str, bytes]:
    path = "proofs/1"
    proof = parse_proof_file((log / path).read_text("utf-8"))
    return {path: proof._replace(hashes=proof.hashes[:-1]).text.encode()}


OF_PROOFS = [entry_changed, checkpoint_changed, proof_cut_off]
OF_LOGS = [*OF_PROOFS, entry_and_its_hash_changed, hash_tile_changed, last_entry_cut_off, end_cut_off]
VERIFIERS: dict[str, tuple[Callable[[Path, str], None], list[Callable[[Path], dict[str, bytes]]]]] = {
    "Go": (verify_with_go, OF_LOGS),
    "aics-tlog": (verify_with_aics, OF_LOGS),
    "Sigstore": (verify_with_sigstore, OF_PROOFS),
}


@pytest.fixture
def database_url() -> str:
    """A database on a server that may be killed."""
    return migrated_database(EVENTS)


async def test_three_programs_of_others_verify_a_log_that_was_made_under_kills_and_refuse_each_forgery(
    database_url: str, tmp_path: Path
) -> None:
    directory = tmp_path / "log"
    directory.mkdir()
    log, promises = await make_log(database_url, directory)

    assert len(log.statuses) >= ARRIVALS
    arrivals = [entry for entry in log.entries if entry["kind"] == "arrival"]
    assert [entry["number"] for entry in arrivals] == [*range(1, len(arrivals) + 1)]
    logged = {entry["person"]: entry.get("received_at", entry["at"]) for entry in log.entries if "person" in entry}
    assert logged == promises
    _, report = await asyncio.to_thread(verify, directory, "--key", log.vkey)
    assert report["findings"] == []

    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    figures = [f"{len(log.texts):,} entries, {size:,} bytes, {FAULTS} kills", str(Counter(log.statuses.values()))]
    for name, (verify_all, forgeries) in VERIFIERS.items():
        began = time.perf_counter()
        verify_all(directory, log.vkey)
        figures.append(f"{name}: {time.perf_counter() - began:.1f} s")
        for forgery in forgeries:
            contents = forgery(directory)
            assert all((directory / path).read_bytes() != content for path, content in contents.items())
            with replace_files(directory, contents), pytest.raises(LogRefused, match=r"^refused: "):
                verify_all(directory, log.vkey)
    print(*figures, sep="\n")
