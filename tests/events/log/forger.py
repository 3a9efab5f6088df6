"""A cheating operator: a running service, with access to its database and its key."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.events.log import generations, head_log, sealing
from holdfast.events.log.keys import signing_key
from holdfast.events.settings import Settings
from holdfast_verify.formats.signed_note import Checkpoint, Signer
from holdfast_verify.formats.tree import TILE_WIDTH, append, bundle, leaf_hash, parse_bundle
from tests.events.log.log_scene import seal_logs
from tests.events.log.verification import verify
from tests.events.pages.own_registration import own_path
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.sealing import seal_once
from tests.helpers.serving import bind_port, running_already, serve_app
from tests.verify.audit.honest_event import Entry, compact_json

TABLES = ("logs", "log_pending", "log_heads", "log_tiles", "log_entries", "registrations")
"""What an older data directory has of the order, besides the counts of events."""


@dataclass
class Forger:
    """A service with one event, whose operator can change everything, and whose people verify it over HTTP.

    answers          the answers to registrations, with their receipts, by name
    first_answers    what paths answer at first, before the service does, by path
    """

    service: Service
    ada: Client
    event: dict[str, Any]
    url: str
    directory: Path
    answers: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    first_answers: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])

    @property
    def log(self) -> str:
        return f"{self.url}/log/events/{self.event['id']}"

    # What people do

    async def register(self, *names: str, together: bool = False) -> None:
        """Let people register, one after the other, and give them their numbers. Nothing is sealed.

        together    whether they get their numbers together: then some of them may be rejected, and not refused
        """
        for name in names:
            body = {"registration": {"event_id": self.event["id"], "email": f"{name}@example.com"}}
            answer = await self.ada.post("/api/registrations", body)
            assert answer.status_code == 202, answer.text
            self.answers[name] = answer.json()
            if not together:
                await self.service.settle()
        await self.service.settle()

    async def link(self, name: str) -> str:
        """The link of a registration, as mails have it."""
        return await own_path(self.service, self.event["id"], f"{name}@example.com")

    async def save_receipt(self, name: str) -> Path:
        """The file that the page of the registration gives."""
        file = self.directory / f"{name}.json"
        file.write_bytes((await self.service.http.get(f"{await self.link(name)}?receipt")).content)
        return file

    async def verify(self, target: Path | str | None = None, *options: Path | str) -> tuple[int, list[str]]:
        """The exit code of `holdfast verify`, and what it says: all findings, each with its kind."""
        code, report = await asyncio.to_thread(verify, target or self.log, *options)
        assert "findings" in report, report
        return code, [f"{finding['kind']}: {finding['message']}" for finding in report["findings"]]

    # What the operator does

    async def seal(self) -> None:
        await seal_logs(self.service)

    async def run_sql(self, statement: Any, **parameters: Any) -> None:
        """Change the database, and let no trigger see it."""
        with psycopg.connect(self.service.database.url) as connection:
            for action in ("disable", "enable"):
                for table in (*TABLES, "events", "log_keys"):
                    connection.execute(SQL(f"alter table {{}} {action} trigger user").format(Identifier(table)))
                if action == "disable":
                    connection.execute(statement, parameters)
        await self.service.drop_caches()

    async def rewrite(self, change: Callable[[list[Entry]], object], *, publish: bool = True) -> None:
        """Change entries of the sealed log, make all its hashes again, and sign its head again.

        publish    whether the new head is put into the head log, as the service does by itself
        """
        [(log_id, origin)] = await self.service.run_sql(
            """
            select log_id, origin from logs join log_heads on log_id = logs.id
             where num_nonnulls(event_id, queue_id) = 1 order by generation desc limit 1
            """
        )
        rows = await self.service.run_sql(
            "select entries from log_entries where log_id = %(id)s order by number", id=log_id
        )
        entries = [json.loads(entry) for (content,) in rows for entry in parse_bundle(content)]
        change(entries)
        texts = [compact_json(entry) for entry in entries]
        tree = append(0, {}, [leaf_hash(text) for text in texts])
        arrivals = max((entry["number"] for entry in entries if entry["kind"] == "arrival"), default=0)
        await self.run_sql("delete from log_entries where log_id = %(id)s", id=log_id)
        await self.run_sql("delete from log_tiles where log_id = %(id)s", id=log_id)
        for number in range(-(-len(texts) // TILE_WIDTH)):
            part = bundle(texts[number * TILE_WIDTH : (number + 1) * TILE_WIDTH])
            await self.run_sql(
                "insert into log_entries values (%(id)s, %(number)s, 0, %(part)s)", id=log_id, number=number, part=part
            )
        for tile, hashes in tree.tiles.items():
            await self.run_sql(
                "insert into log_tiles values (%(id)s, %(level)s, %(number)s, %(hashes)s)",
                id=log_id,
                level=tile.level,
                number=tile.number,
                hashes=hashes,
            )
        key = await self.service.database.transact(signing_key)
        note = Signer(origin, key).sign(Checkpoint(origin, tree.size, tree.root).text)
        await self.run_sql(
            """
            update log_heads set size = %(size)s, root = %(root)s, arrivals = %(arrivals)s,
                   signed_size = case when %(publish)s then 0 else %(size)s end,
                   checkpoint = case when not %(publish)s then %(note)s end
             where log_id = %(id)s
            """,
            id=log_id,
            size=tree.size,
            root=tree.root,
            arrivals=arrivals,
            publish=publish,
            note=note,
        )
        if publish:
            await sealing.sign(self.service.database)
            await seal_once(self.service.database)
            await head_log.publish(self.service.database, ())

    async def replace_key(self) -> None:
        """Sign everything with another key from now on, what is signed already too."""
        await self.run_sql("delete from log_keys")
        await self.rewrite(lambda entries: None)

    async def copy_data(self) -> None:
        """Keep a copy of the data, as an older data directory is one."""
        for table in (*TABLES, "events"):
            await self.run_sql(f"create table old_{table} as table {table}")

    async def go_back(self) -> None:
        """Go on with the copy of the data, and forget what came later."""
        for table in reversed(TABLES):
            await self.run_sql(f"delete from {table}")
        for table in TABLES:
            await self.run_sql(f"insert into {table} overriding system value select * from old_{table}")
        await self.run_sql(
            """
            update events set registered_count = old.registered_count, waitlisted_count = old.waitlisted_count
              from old_events as old where old.id = events.id
            """
        )

    def restore(self) -> None:
        """Let the database be one that was restored from a backup, which was made just now."""
        with psycopg.connect(self.service.database.url, autocommit=True) as connection:
            generations.begin_generations(connection)


@asynccontextmanager
async def run_forger(settings: Settings, directory: Path, **fields: Any) -> AsyncGenerator[Forger]:
    """A service with a cheating operator, and an event."""
    port = bind_port()
    url = port.url
    async with running_events(settings.model_copy(update={"base_url": url})) as service:
        ada = await service.organizer()
        event = await ada.create_event(**{"capacity": 2, "waitinglist_capacity": 2, **fields})
        forger = Forger(service, ada, event, url, directory)

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if first := forger.first_answers.get(scope.get("path", "")):
                await Response(first.pop(0))(scope, receive, send)
            else:
                await service.app(scope, receive, send)

        async with serve_app(running_already(answer), port):
            yield forger
