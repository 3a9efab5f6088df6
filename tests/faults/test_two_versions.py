"""Old code and new code serve one database together under load, through a whole upgrade, and nobody notices.

The old code comes from the history of the repository.
"""

import asyncio
import io
import itertools
import os
import random
import subprocess
import tarfile
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.events.product import EVENTS
from holdfast.inventory.product import INVENTORY
from holdfast.inventory.stock.audit import audit
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.security.secrets import secret
from tests.databases import scratch_database
from tests.faults.processes import HOLDFAST, Process, outcomes
from tests.faults.test_selling_out import assert_places_went_in_order, organizer_with_event, rows
from tests.faults.test_waiting_room import stored
from tests.inventory.support import unlimited
from tests.inventory.test_ledger_under_kills import POOLS, Agent
from tests.schema import schema_of
from tests.serving import PLAIN
from tests.support import eventually, queue_fields

OLD = "70cc5f1"
"""The commit whose code is the old one: the last before the baseline, which older databases have to pass through."""

PAUSE_SECONDS = 10.0 if "HOLDFAST_SOAK" in os.environ else 2.0
"""For how long each stage of the upgrade is under load."""

SEATS, WAITING = 200, 100_000
CLIENTS = 8


def code_of(commit: str, directory: Path) -> Path:
    """Where the code of a commit is. Skips the test if the history does not have it."""
    command = ["git", "-C", Path(__file__).parents[2], "archive", commit, "src"]
    try:
        archive = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"The history of the repository does not have {commit}: {error}")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(directory, filter="data")
    return directory / "src"


class Upgrade:
    """A service while it is upgraded: two old processes, then two new ones beside them, then these alone.

    stage      what has been reached; empty when all is done
    answers    how many there were, by stage and status
    """

    def __init__(self, url: str, directory: Path, old_code: Path, product: ServiceProcess[Any, Any]) -> None:
        self.url = url
        self.stage = "old code"
        self.answers: Counter[tuple[str, int]] = Counter()
        self._directory = directory
        self._old_code = old_code
        self._product = product
        self._started: list[Process] = []
        self._serving: list[Process] = []
        self._open_requests: Counter[Process] = Counter()
        self._turns = itertools.count()

    def old_command(self, *words: str) -> str:
        """What a command of the old code prints last."""
        name = self._product.name
        environment = {
            **os.environ,
            "PYTHONPATH": str(self._old_code),
            f"{name.upper()}_DATABASE_URL": self.url,
            f"{name.upper()}_SECRET_KEY": secret("", self._directory / f"{name}.secret").value.decode(),
            "HOLDFAST_DATA_DIR": str(self._directory),
        }
        done = subprocess.run([HOLDFAST, name, *words], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    def start(self, code: Path | None = None) -> Process:
        process = Process(self.url, self._directory, service=self._product.name, code=code)
        self._started.append(process)
        self._serving.append(process)
        return process

    def start_old(self) -> Process:
        return self.start(self._old_code)

    async def run(self) -> None:
        """Do the upgrade, under the load that others make."""
        old = [*self._started]
        await asyncio.sleep(PAUSE_SECONDS)
        self.stage = "migration"
        assert await asyncio.to_thread(self._product.migrate, self.url) != []
        self.stage = "old code on the new schema"
        # Old code may be started again, too.
        old.append(await asyncio.to_thread(self.start_old))
        await asyncio.sleep(PAUSE_SECONDS)
        for _ in range(2):
            await asyncio.to_thread(self.start)
        self.stage = "old and new code"
        await asyncio.sleep(2 * PAUSE_SECONDS)
        for process in old:
            # As a load balancer does: nothing more is sent to it, and what was sent is answered.
            self._serving.remove(process)
            await eventually(partial(self._has_answered, process), 60)
            await asyncio.to_thread(process.stop)
            self._started.remove(process)
        self.stage = "new code"
        await asyncio.sleep(PAUSE_SECONDS)
        self.stage = ""

    async def ask(self, http: httpx2.AsyncClient, method: str, path: str, body: Any = None) -> httpx2.Response:
        """The answer of one process after the other. Only a migration may keep somebody waiting for too long."""
        while True:
            process, stage = self._serving[next(self._turns) % len(self._serving)], self.stage
            self._open_requests[process] += 1
            answer = await http.request(method, process.url + path, json=body)
            self._open_requests[process] -= 1
            self.answers[stage, answer.status_code] += 1
            if answer.status_code < 500:
                return answer
            assert answer.status_code == 503, (stage, path, answer.text, process.log.read_text()[-3000:])
            assert "migration" in {stage, self.stage}, (stage, path, answer.text)

    async def _has_answered(self, process: Process) -> bool:
        return not self._open_requests[process]

    def close(self) -> None:
        for process in self._started:
            process.kill()


@contextmanager
def upgrading(template_url: str, directory: Path, product: ServiceProcess[Any, Any]) -> Generator[Upgrade]:
    """A service on a database that old code has made."""
    old_code = code_of(OLD, directory)
    with scratch_database(template_url, "versions", "template template1") as url:
        upgrade = Upgrade(url, directory, old_code, product)
        try:
            upgrade.old_command("migrate")
            yield upgrade
        finally:
            upgrade.close()


async def test_registrations_and_queues_go_on_without_an_error_while_the_code_is_exchanged(
    template_url: str, tmp_path: Path
) -> None:
    numbers = itertools.count()
    polls: list[str] = []
    visitors: list[str] = []
    with upgrading(template_url, tmp_path, EVENTS) as upgrade:
        first, _ = upgrade.start_old(), upgrade.start_old()
        key, event_id = await organizer_with_event(first, capacity=SEATS, waitinglist_capacity=WAITING)
        async with client({"X-API-Key": key}) as http:
            made = await upgrade.ask(http, "POST", "/api/queues", {"queue_event": queue_fields(release_rate=600)})
            queue = f"/api/queues/{made.json()['data']['id']}"

            async def register() -> None:
                while upgrade.stage:
                    person = {"event_id": event_id, "email": f"new{next(numbers)}@example.com"}
                    answer = await upgrade.ask(http, "POST", "/api/registrations", {"registration": person})
                    assert answer.status_code == 202, answer.text
                    polls.append(answer.json()["next"]["url"])
                    answer = await upgrade.ask(http, "GET", random.choice(polls))
                    assert answer.status_code == 200 or answer.json()["code"] == "registration_pending", answer.text

            async def join() -> None:
                while upgrade.stage:
                    visitor = f"visitor{next(numbers)}"
                    answer = await upgrade.ask(http, "POST", f"{queue}/join", {"visitor_id": visitor})
                    assert answer.status_code == 202, answer.text
                    visitors.append(visitor)
                    answer = await upgrade.ask(http, "GET", f"{queue}/status/{random.choice(visitors)}")
                    assert answer.status_code == 200, answer.text

            await asyncio.gather(upgrade.run(), *(work() for work in (register, join) for _ in range(CLIENTS)))
            answers = await outcomes(upgrade.start(), key, polls, seconds=300)
        final_rows = rows(upgrade.url, event_id)
        tickets, released = stored(upgrade.url)
        upgraded = schema_of("events", upgrade.url)

    print(*sorted(upgrade.answers.items()), sep="\n")
    assert all("data" in answer for answer in answers.values())
    assert len(final_rows) == len(polls)
    assert_places_went_in_order(final_rows, SEATS, WAITING)
    assert tickets.keys() == {*visitors}
    assert [ticket for ticket, _ in released] == list(range(1, len(released) + 1))
    assert upgraded == schema_of("events", template_url)


class StrictAgent(Agent):
    """An agent whose every call is answered at once."""

    def __init__(self, upgrade: Upgrade, key: str, number: int) -> None:
        super().__init__([], key, number)
        self._upgrade = upgrade

    async def insist(self, http: httpx2.AsyncClient, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        return (await self._upgrade.ask(http, "POST", "/mcp", call)).json()["result"]


async def test_stock_goes_on_without_an_error_while_the_code_is_exchanged(
    template_url: str, inventory_template: str, tmp_path: Path
) -> None:
    with upgrading(template_url, tmp_path, INVENTORY) as upgrade:
        key = upgrade.old_command("shop", "add", "busy.myshopify.com")
        upgrade.start_old()
        upgrade.start_old()
        agents = [StrictAgent(upgrade, key, number) for number in range(CLIENTS)]
        async with client({"authorization": f"Bearer {key}"}) as http:
            for number in range(POOLS):
                fields = {"name": f"Pool {number}", "quantity": 100, "allow_negative": number % 4 == 0}
                await agents[0].insist(http, "create_pool", fields)
        turns = itertools.takewhile(lambda _: upgrade.stage, itertools.count())
        await asyncio.gather(upgrade.run(), *(agent.work(turns) for agent in agents))

        database = INVENTORY.database(unlimited(upgrade.url, tmp_path))
        await database.open()
        [(shop_id,)] = await database.read(lambda tx: tx.tuples("select id from shops"))
        differences = await database.read(lambda tx: audit(tx, shop_id))
        entries = await database.read(
            lambda tx: tx.tuples("select idempotency_key, id from ledger where idempotency_key is not null order by id")
        )
        await database.close()
        upgraded = schema_of("inventory", upgrade.url)

    print(*sorted(upgrade.answers.items()), sep="\n")
    stored: dict[str, list[int]] = {}
    for idempotency_key, id in entries:
        stored.setdefault(idempotency_key, []).append(id)
    assert differences == []
    assert stored == {key: ids for agent in agents for key, ids in agent.acknowledged.items()}
    assert upgraded == schema_of("inventory", inventory_template)


def client(headers: dict[str, str]) -> httpx2.AsyncClient:
    """A client that lets idle connections go before the service does, after five seconds: none ends as it is used."""
    limits = httpx2.Limits(keepalive_expiry=2)
    return httpx2.AsyncClient(verify=PLAIN, headers=headers, timeout=30, limits=limits)
