"""A release is upgraded to this version under load, with and without a stop, without an error.

Without a stop, old code and new code serve one database together. The old code is a wheel of the release.
"""

import asyncio
import itertools
import random
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from functools import cache
from typing import Any, LiteralString

import httpx2
import psycopg
import pytest

from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from holdfast.inventory.stock.ledger_audit import audit
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.security.http_client import HttpClient
from tests.faults.stored_order import (
    assert_places_went_in_order,
    register_organizer_with_event,
    registrations_in_order,
    stored_tickets,
)
from tests.faults.upgrades import SOAK, OldDatabase, Upgrade, code_of, old_database, open_upgrade, shared_directory
from tests.helpers.databases import scratch_database
from tests.helpers.events_service import queue_fields
from tests.helpers.inventory_service import unlimited
from tests.helpers.processes import outcomes
from tests.helpers.serving import PLAIN
from tests.inventory.ledger_agent import POOL_COUNT, LedgerAgent
from tests.programs.releases import releases
from tests.programs.schema import schema_of

SEATS, WAITING = 200, 100_000
CLIENTS = 8

WITH_A_STOP = releases() if SOAK else releases()[-1:]
UPGRADES = pytest.mark.parametrize(
    ("release", "stop"),
    [
        *(pytest.param(release, False, id=f"{release} without a stop") for release in releases()),
        *(pytest.param(release, True, id=f"{release} with a stop") for release in WITH_A_STOP),
    ],
)

SERVICES: Mapping[str, tuple[ServiceProcess[Any, Any], tuple[str, ...]]] = {
    "events": (EVENTS, ()),
    "inventory": (INVENTORY, ("shop", "add", "busy.myshopify.com")),
}
"""Both services, with a command that a release runs after its migration."""

DatabaseOf = Callable[[str, str], OldDatabase]
"""The database that a release of a service has made, by the names of both."""


@pytest.fixture(scope="module")
def database_of(template_url: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[DatabaseOf]:
    """The databases of both services, as each release has made them, for all tests together."""
    with ExitStack() as stack:

        @cache
        def make(release: str, name: str) -> OldDatabase:
            process, words = SERVICES[name]
            code = code_of(release, shared_directory(tmp_path_factory))
            directory = tmp_path_factory.mktemp(name)
            return stack.enter_context(old_database(release, code, directory, template_url, process, *words))

        yield make


@UPGRADES
async def test_registrations_and_queues_go_on_without_an_error_while_the_code_is_exchanged(
    release: str, stop: bool, database_of: DatabaseOf, template_url: str
) -> None:
    numbers = itertools.count()
    polls: list[str] = []
    visitors: list[str] = []
    with open_upgrade(database_of(release, "events"), EVENTS) as upgrade:
        key, event_id = await register_organizer_with_event(
            upgrade.process, capacity=SEATS, waitinglist_capacity=WAITING
        )
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

            await asyncio.gather(upgrade.run(stop=stop), *(work() for work in (register, join) for _ in range(CLIENTS)))
            answers = await outcomes(upgrade.process, key, polls, seconds=300)
        final_rows = registrations_in_order(upgrade.url, event_id)
        tickets, released = stored_tickets(upgrade.url)
        upgraded = schema_of("events", upgrade.url)

    upgrade.report()
    assert all("data" in answer for answer in answers.values())
    assert len(final_rows) == len(polls)
    assert_places_went_in_order(final_rows, SEATS, WAITING)
    assert tickets.keys() == {*visitors}
    assert [ticket for ticket, _ in released] == list(range(1, len(released) + 1))
    assert upgraded == schema_of("events", template_url)


class StrictAgent(LedgerAgent):
    """An agent whose every call is answered at once."""

    def __init__(self, upgrade: Upgrade, key: str, number: int) -> None:
        super().__init__([], key, number)
        self._upgrade = upgrade

    async def insist(self, http: httpx2.AsyncClient, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        return (await self._upgrade.ask(http, "POST", "/mcp", call)).json()["result"]


@UPGRADES
async def test_stock_goes_on_without_an_error_while_the_code_is_exchanged(
    release: str, stop: bool, database_of: DatabaseOf, inventory_template: str
) -> None:
    old = database_of(release, "inventory")
    with open_upgrade(old, INVENTORY) as upgrade:
        agents = [StrictAgent(upgrade, old.key, number) for number in range(CLIENTS)]
        async with client({"authorization": f"Bearer {old.key}"}) as http:
            for number in range(POOL_COUNT):
                fields = {"name": f"Pool {number}", "quantity": 100, "allow_negative": number % 4 == 0}
                await agents[0].insist(http, "create_pool", fields)
        turns = itertools.takewhile(lambda _: upgrade.stage, itertools.count())
        await asyncio.gather(upgrade.run(stop=stop), *(agent.work(turns) for agent in agents))

        database = INVENTORY.database(unlimited(upgrade.url, upgrade.directory))
        await database.open()
        [(shop_id,)] = await database.read(lambda tx: tx.tuples("select id from shops"))
        differences = await database.read(lambda tx: audit(tx, shop_id))
        entries = await database.read(
            lambda tx: tx.tuples("select idempotency_key, id from ledger where idempotency_key is not null order by id")
        )
        await database.close()
        upgraded = schema_of("inventory", upgrade.url)

    upgrade.report()
    stored: dict[str, list[int]] = {}
    for idempotency_key, id in entries:
        stored.setdefault(idempotency_key, []).append(id)
    assert differences == []
    assert stored == {key: ids for agent in agents for key, ids in agent.acknowledged.items()}
    assert upgraded == schema_of("inventory", inventory_template)


DEFINITIONS: LiteralString = """
    select 'function ' || oid::regprocedure, pg_get_functiondef(oid), xmin::text from pg_proc
     where pronamespace = 'public'::regnamespace and proname !~ '^procrastinate'
    union all
    select format('trigger %s on %s', tgname, tgrelid::regclass), pg_get_triggerdef(oid), xmin::text from pg_trigger
     where not tgisinternal and tgrelid::regclass::text !~ '^procrastinate'
"""
"""Functions and triggers, what each one is, and the transaction that has made this version of it."""


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("release", releases())
def test_an_upgrade_makes_no_function_and_no_trigger_again_that_stays_as_it_was(
    release: str, name: str, database_of: DatabaseOf
) -> None:
    process, _ = SERVICES[name]
    with scratch_database(database_of(release, name).url, "upgraded") as url, psycopg.connect(url) as connection:
        before = {object: made for object, *made in connection.execute(DEFINITIONS).fetchall()}
        connection.rollback()
        process.migrate(url)
        after = {object: made for object, *made in connection.execute(DEFINITIONS).fetchall()}

    alike = [object for object, (text, _) in before.items() if object in after and after[object][0] == text]
    assert len(alike) > 10
    assert [object for object in alike if after[object] != before[object]] == []


def client(headers: dict[str, str]) -> httpx2.AsyncClient:
    """A client that lets idle connections go before the service does, after five seconds: none ends as it is used."""
    limits = httpx2.Limits(keepalive_expiry=2)
    return HttpClient(verify=PLAIN, headers=headers, timeout=30, limits=limits)
