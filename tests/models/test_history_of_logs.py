"""People register, leave, move up and queue under faults: the public logs alone show who has what.

The logs are read as any reader reads them, from their addresses. At the end they must agree with the database, with
every receipt that was given out, and with every head and tile that was ever served.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import httpx2

from holdfast.events.service import EVENTS
from holdfast.kit.security.http_client import HttpClient
from holdfast_verify.check.receipts import ForeignReceiptFile, check_receipt, parse_file
from holdfast_verify.check.trusted_key import parse_keys
from holdfast_verify.formats.receipts import LOGGED_WITHIN_SECONDS
from holdfast_verify.formats.tree import tile_path
from tests.events.log.pending import moment
from tests.events.log.verification import verify
from tests.helpers.data_directories import migrated_database
from tests.helpers.events_service import eventually
from tests.helpers.processes import organizer_at, running_processes
from tests.helpers.serving import PLAIN
from tests.models.crowd_client import AnyClient
from tests.models.history import SOAK, History, SentRequest, agree, crash
from tests.models.order_in_database import StoredOrder, keep_arrivals, pending_rows, read_order
from tests.models.published_log import PublishedLog, read_log

EVENT_COUNT = 3
CLIENTS = 6
ANSWER_TIMEOUT_SECONDS = 2
ANSWERS_BETWEEN_FAULTS = 150
OCCURRENCES = (("change", "organizer"), ("change", "service"), ("release", None))
"""What must have happened besides arrivals, by kind and by who did it: removals, promotions, releases."""

PAUSE_SECONDS = 0.03
"""Seconds between two steps of a client: more would only be a load while a process starts."""

FAULTS = (0, "crash", 1) if not SOAK else (0, "crash", 1, "stop") * 20
"""What fails, one after the other: a process is killed, by its place, or PostgreSQL, or a process stops."""

STOPPED_SECONDS = 4
"""For how long: another process leads by then, and both do when it wakes up."""

STEPS = (
    *["register"] * 10,
    *["join"] * 4,
    *["read"] * 4,
    *("leave", "leave", "leave", "put aside", "move up", "resize"),
)


class Guests:
    """People of some events and a queue, their organizer, and readers of the logs."""

    def __init__(self, history: History, events: Sequence[int], queue: int) -> None:
        self.history = history
        self.paths = [*(f"/log/events/{event}" for event in events), f"/log/queues/{queue}"]
        self._events, self._queue = events, queue
        self._numbers = itertools.count()
        self._polls: list[str] = []

    async def come(self, http: AnyClient, _: int) -> None:
        """Do one of the things that happen to places. The service refuses some of them."""
        chance, ask = self.history.chance, self.history.ask
        step, event, number = chance.choice(STEPS), chance.choice(self._events), next(self._numbers)
        if step == "register":
            # Some come again: those who were rejected may get a place now.
            name = f"n{number if chance.random() < 0.7 else chance.randrange(number + 1)}@example.com"
            body = {"registration": {"event_id": event, "email": name}}
            exchange = await ask(http, ("register", name), "POST", "/api/registrations", json=body)
            if exchange.answer.status_code == 202:
                self._polls.append(exchange.answer.json()["next"]["url"])
        elif step == "join":
            body = {"visitor_id": f"visitor{number}"}
            await ask(http, ("join", number), "POST", f"/api/queues/{self._queue}/join", json=body)
        elif step == "resize":
            sizes = {"capacity": chance.randrange(5, 60), "waitinglist_capacity": chance.randrange(30)}
            await ask(http, ("resize", event), "PATCH", f"/api/events/{event}", json={"event": sizes})
        elif step == "read":
            await self._read(http, chance.choice(self.paths))
        elif self._polls and step == "leave":
            await ask(http, ("leave", number), "DELETE", chance.choice(self._polls))
        elif self._polls:
            status = "waitlisted" if step == "put aside" else "registered"
            body = {"registration": {"status": status}}
            await ask(http, (step, number), "PATCH", chance.choice(self._polls), json=body)

    async def _read(self, http: AnyClient, log: str) -> None:
        """Read a head, the last entries below it, and ask for one that is beyond it."""
        head = await self._get(http, log, "checkpoint")
        if head.status_code != 200:
            return
        size = _size(head)
        bundle, width = divmod(size - 1, 256)
        for level in ("entries", 0):
            tile = await self._get(http, log, tile_path(level, bundle, width + 1))
            agree(tile.status_code == 200, f"{log} has signed {size} entries, and says of the last: {tile.text}")
        bundle, width = divmod(size, 256)
        beyond = await self._get(http, log, tile_path("entries", bundle, width + 1))
        if beyond.status_code == 200:
            later = await self._get(http, log, "checkpoint")
            agree(_size(later) > size, f"{log} has shown entry {size}, and signed {_size(later)} entries")

    async def _get(self, http: AnyClient, log: str, path: str) -> httpx2.Response:
        return (await self.history.ask(http, ("read", log, path), "GET", f"{log}/{path}")).answer

    async def fail(self) -> None:
        """Let everything fail in turn, and then let all end."""
        history = self.history
        try:
            for fault in FAULTS:
                await self._progress()
                if fault == "crash":
                    await asyncio.to_thread(crash, history.database_url)
                elif fault == "stop":
                    process = history.chance.choice(history.processes)
                    process.suspend()
                    await asyncio.sleep(STOPPED_SECONDS)
                    process.resume()
                else:
                    process = history.processes[int(fault)]
                    await asyncio.to_thread(process.kill)
                    await self._progress()
                    await asyncio.to_thread(process.start)
            await self._progress()
        finally:
            history.ended.set()

    async def _progress(self) -> None:
        goal = self.history.answers + ANSWERS_BETWEEN_FAULTS
        await eventually(lambda: self.history.answers >= goal, seconds=120)


def _size(head: httpx2.Response) -> int:
    return int(head.text.split("\n")[1])


async def begin(url: str) -> tuple[dict[str, str], list[int], int]:
    """The headers of an organizer, its events, and its queue."""
    async with organizer_at(url) as ada:
        events = [(await ada.create_event(capacity=20, waitinglist_capacity=10))["id"] for _ in range(EVENT_COUNT)]
        queue = await ada.create_queue(release_rate=600)
    return ada.headers, events, queue["id"]


async def test_the_public_logs_alone_reconstruct_the_order_in_the_database(tmp_path: Path) -> None:
    database_url = migrated_database(EVENTS)  # on a server of its own, which crashes
    keep_arrivals(database_url)
    with running_processes(database_url, tmp_path, 2, base_url="http://events.example") as processes:
        headers, events, queue = await begin(processes[0].url)
        history = History(processes, database_url, headers)
        guests = Guests(history, events, queue)
        async with asyncio.TaskGroup() as group:
            group.create_task(guests.fail())
            for number in range(CLIENTS):
                group.create_task(_keep_on(guests, number))

        async def is_all_signed() -> bool:
            return await asyncio.to_thread(pending_rows, database_url) == 0

        await eventually(is_all_signed, seconds=60)
        logs = {path: await read_log(processes[1].url + path, _directory(tmp_path, path)) for path in guests.paths}
    explain(history.exchanges, logs, {path: read_order(database_url, _subject(path)) for path in logs})
    for log in logs.values():
        _, report = await asyncio.to_thread(verify, log.directory, "--key", log.vkey)
        agree(report["findings"] == [], f"holdfast verify found {report['findings'][:3]}")
    print(Counter(entry["kind"] for log in logs.values() for entry in log.entries), f"{history.answers} answers")


async def _keep_on(guests: Guests, number: int) -> None:
    headers = dict(guests.history.headers)
    async with HttpClient(verify=PLAIN, headers=headers, timeout=ANSWER_TIMEOUT_SECONDS) as http:
        while not guests.history.ended.is_set():
            await guests.come(http, number)
            await asyncio.sleep(PAUSE_SECONDS)


def _directory(parent: Path, path: str) -> Path:
    directory = parent / path.replace("/", "-")
    directory.mkdir()
    return directory


def _subject(path: str) -> str:
    """`event 7` of `/log/events/7`."""
    _, _, noun, id = path.split("/")
    return f"{noun[:-1]} {id}"


def explain(exchanges: Sequence[SentRequest], logs: dict[str, PublishedLog], orders: dict[str, StoredOrder]) -> None:
    """Fail unless the logs agree with the database, and with all that was ever answered."""
    for path, log in logs.items():
        agree_with_database(_subject(path), log, orders[path])
        answers = {
            (exchange.request[2], exchange.answer)
            for exchange in exchanges
            if exchange.request[:2] == ("read", path) and exchange.answer and exchange.answer.status_code == 200
        }
        only_grown(log, [answer.text for name, answer in answers if name == "checkpoint"])
        for name, answer in answers:
            agree(name == "checkpoint" or log.contains(name, answer.content), f"{path}/{name} was different before")
    accepted = [
        exchange.answer
        for exchange in exchanges
        if exchange.request[0] in ("register", "join") and exchange.answer and exchange.answer.status_code == 202
    ]
    agree(len(accepted) > 0, "nobody was accepted")
    entries = [entry for log in logs.values() for entry in log.entries]
    agree({*OCCURRENCES} <= {(entry["kind"], entry.get("by")) for entry in entries}, "some things did not happen")
    for answer in accepted:
        file = parse_file(answer.content)
        assert isinstance(file, ForeignReceiptFile)
        keeps_promise(logs[file.receipt.content.log.removeprefix("http://events.example")], file)


def agree_with_database(subject: str, log: PublishedLog, order: StoredOrder) -> None:
    """Fail unless what a log tells is what the database had, no less and no more."""
    expected = [arrival.entry for arrival in order.numbered]
    logged = [entry for entry in log.entries if entry["kind"] == "arrival"]
    for entry, other in itertools.zip_longest(logged, expected):
        agree(entry == other, f"the log of {subject} has {entry}, and the database {other}")
    commitments = {entry["person"] for entry in logged}
    for arrival in order.accepted:
        person = arrival.commitment
        agree(
            (person in commitments) != (person in log.removals), f"{arrival} is not in the log of {subject} just once"
        )
        if removal := log.removals.get(person):
            agree(removal["received_at"] == moment(arrival.at), f"{removal} is not {arrival}")
    stored = {arrival.commitment for arrival in order.accepted}
    agree(commitments | log.removals.keys() <= stored, f"the log of {subject} has people who never came")

    for number, status in log.statuses.items():
        other = order.statuses.get(number)
        # A person who leaves, or comes again after a rejection, no longer has this number.
        agree(
            status == other or (other is None and status in ("removed", "rejected", "joined")),
            f"number {number} of {subject} is {status} in the log, and {other} in the database",
        )
    missing = order.statuses.keys() - log.statuses.keys()
    agree(not missing, f"the log of {subject} has not the numbers {missing}")
    releases = [(entry["from"], entry["to"]) for entry in log.entries if entry["kind"] == "release"]
    # The queue went on to let people in after the log was read.
    for release, other in itertools.zip_longest(releases, order.releases[: len(releases)]):
        agree(release == other, f"the log of {subject} let in {release}, and the database {other}")


def only_grown(log: PublishedLog, notes: Sequence[str]) -> None:
    """Fail unless the log begins with every head of it that a reader was shown."""
    heads = [log.open_head(note) for note in notes]
    roots = log.roots([head.size for head in heads])
    for head in heads:
        agree(head.size <= len(log.texts) and roots[head.size] == head.root, f"the log does not begin with {head}")


def keeps_promise(log: PublishedLog, file: ForeignReceiptFile) -> None:
    """Fail unless a receipt is signed, opens its commitment, and the log has in time what it promises."""
    promise = file.receipt.content
    faults = check_receipt(file, None, parse_keys(log.vkey))
    agree(not faults, f"{promise} is not right: {faults}")
    places = log.places.get(promise.person, [])
    agree(len(places) == 1, f"{promise} was promised, and is {len(places)} times in the log")
    entry = log.entries[places[0]]
    at = entry.get("received_at", entry["at"])
    agree(at == moment(promise.at), f"{promise} is in the log as {entry}")
    agree(promise.ticket in (None, entry.get("number")), f"{promise} is in the log as {entry}")
    delay = (datetime.fromisoformat(log.sealed_at[places[0]]) - promise.at).total_seconds()
    agree(delay <= LOGGED_WITHIN_SECONDS, f"{promise} was kept after {delay:.0f} seconds")
