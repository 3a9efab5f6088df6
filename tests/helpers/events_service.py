"""Tools of the tests: a service, people who hold keys, and short functions for what they do."""

import asyncio
import contextlib
import functools
import inspect
import itertools
import shutil
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from holdfast.accounts import sessions
from holdfast.events.events.model import CHANGE_CHANNEL
from holdfast.events.keys.operations import insert_key
from holdfast.events.log import keys as log_keys
from holdfast.events.queues import model as queues
from holdfast.events.registrations import own_cancellations
from holdfast.events.resources import Database
from holdfast.events.seats import settlement
from holdfast.events.service import EVENTS
from holdfast.events.service import service as build_service
from holdfast.events.settings import Settings
from holdfast.kit.http.application import Application
from holdfast.kit.operations.runner import Runner
from holdfast.kit.security import api_keys
from tests.helpers.connections import ReusedConnection
from tests.helpers.databases import State, empty_database, restore_database

_numbers = itertools.count(1)


CACHE_CHANNELS = (
    api_keys.CHANNEL,
    sessions.SESSIONS_CHANNEL,
    CHANGE_CHANNEL,
    log_keys.LOG_KEYS_CHANNEL,
    queues.QUEUES_CHANNEL,
)
"""Channels on which a process is told to drop what it caches of the database."""


class Client:
    """A client of the REST API, with a key or without."""

    def __init__(self, http: httpx2.AsyncClient, key: str | None = None, id: int = 0, slug: str = "") -> None:
        self.http = http
        self.key = key
        self.id = id
        self.slug = slug

    @property
    def headers(self) -> dict[str, str]:
        """What it sends with each request."""
        return {"X-API-Key": self.key} if self.key else {}

    async def request(self, method: str, path: str, body: Any = None, **options: Any) -> httpx2.Response:
        headers = self.headers
        if "content" in options:
            headers["Content-Type"] = "application/json"
        headers |= options.pop("headers", {})
        if body is not None:
            options["json"] = body
        return await self.http.request(method, path, headers=headers, **options)

    async def get(self, path: str, **options: Any) -> httpx2.Response:
        return await self.request("GET", path, **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> httpx2.Response:
        return await self.request("POST", path, body, **options)

    async def put(self, path: str, body: Any = None, **options: Any) -> httpx2.Response:
        return await self.request("PUT", path, body, **options)

    async def patch(self, path: str, body: Any = None, **options: Any) -> httpx2.Response:
        return await self.request("PATCH", path, body, **options)

    async def delete(self, path: str, **options: Any) -> httpx2.Response:
        return await self.request("DELETE", path, **options)

    async def create_event(self, **fields: Any) -> dict[str, Any]:
        """A free event with 10 seats next month, unless the fields say otherwise."""
        response = await self.post("/api/events", {"event": event_fields(**fields)})
        assert response.status_code == 201, response.text
        return response.json()["data"]

    async def create_queue(self, **fields: Any) -> dict[str, Any]:
        """A queue that releases one visitor a second, unless the fields say otherwise."""
        response = await self.post("/api/queues", {"queue_event": queue_fields(**fields)})
        assert response.status_code == 201, response.text
        return response.json()["data"]

    async def register(self, event_id: int, **person: Any) -> str:
        """Register `email=` or `user_id=` and return the address to poll."""
        response = await self.post("/api/registrations", {"registration": {"event_id": event_id, **person}})
        assert response.status_code == 202, response.text
        return response.json()["next"]["url"]


class Service:
    """The events service, running in this process."""

    def __init__(self, app: Application, http: httpx2.AsyncClient, database: Database, runner: Runner) -> None:
        self.app = app
        self.runner = runner
        self.http = http
        self.database = database
        self.anonymous = Client(http)

    @property
    def base_url(self) -> str:
        """Where its links lead."""
        return self.database.resources.settings.base_url

    def client_at(self, address: str = "127.0.0.1", **headers: str) -> httpx2.AsyncClient:
        """A client at an address, which sends these headers with each request."""
        transport = httpx2.ASGITransport(self.app, client=(address, 1))
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx2.AsyncClient(transport=transport, base_url="http://events.test", headers=sent)

    async def organizer(self, name: str = "Ada Events", *, is_proved: bool = True, **fields: Any) -> Client:
        """A new organizer with its key.

        is_proved    whether the owner of its address confirmed it, long enough ago that mails have no limit
        """
        number = next(_numbers)
        body = {"name": name, "email": f"organizer{number}@example.com", "slug": f"organizer-{number}", **fields}
        response = await self.anonymous.post("/api/organizers/register", {"organizer": body})
        assert response.status_code == 201, response.text
        data = response.json()["data"]
        if is_proved:
            proved = "update users set proved_at = now() - interval '60 days' where id = %(id)s"
            await self.run_sql(proved, id=data["organizer"]["id"])
        return Client(self.http, data["api_key"]["key"], data["organizer"]["id"], data["organizer"]["slug"])

    async def set_proof_age(self, organizer: Client, days: int | None = 60) -> Client:
        """Store that an organizer has confirmed its address this many days ago; None: not yet."""
        await self.run_sql(
            "update users set proved_at = now() - make_interval(days => %(days)s) where id = %(id)s",
            days=days,
            id=organizer.id,
        )
        await self.database.transact(lambda tx: sessions.announce_change(tx, organizer.id))
        await self.wait_for_notices()
        return organizer

    async def admin(self) -> Client:
        """A client with an admin key."""
        key = await self.database.transact(lambda tx: insert_key(tx, None, "Tests"))
        return Client(self.http, key.key)

    async def settle(self) -> int:
        """Settle everything that waits. Returns how many registrations were settled."""
        settled = await settlement.settle(self.database)
        await self.wait_for_notices()
        return settled

    async def complete_cancellations(self) -> int:
        """Let the time to undo be over for all cancellations. Returns how many registrations are gone."""
        await self.run_sql("update registrations set cancels_at = now() where cancels_at is not null")
        removed = await own_cancellations.remove_cancelled(self.database)
        await self.wait_for_notices()
        return removed

    async def wait_for_notices(self) -> None:
        """Wait until this process has handled the notices of everything that was committed before."""
        await self.database.notices.flush()
        heard = asyncio.Event()
        with self.database.listen("test", lambda _: heard.set()):
            async with self.database.pool.connection() as connection:
                await connection.execute("select pg_notify('holdfast', 'test now')")
            async with asyncio.timeout(5):
                await heard.wait()

    async def drop_caches(self) -> None:
        """Drop what this process caches of the database, as it does when it has been without notices."""
        self.database.notices.add((channel, "") for channel in CACHE_CHANNELS)
        await self.wait_for_notices()

    async def run_sql(self, statement: Any, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement that the service does not know of, to prepare a test or to read the result."""
        async with self.database.pool.connection() as connection:
            cursor = await connection.execute(statement, parameters)
            if cursor.description is not None:
                return await cursor.fetchall()
        await self.wait_for_notices()
        return []


@contextlib.asynccontextmanager
async def running_events(
    settings: Settings, *, resources: Mapping[str, Any] | None = None, **options: Any
) -> AsyncGenerator[Service]:
    """The service under these settings, without background work.

    resources    what it uses instead of what the settings make, by the names of the fields
    """
    database = EVENTS.database(settings)
    database.resources = replace(database.resources, **(resources or {}))
    database.pool.connection_class = ReusedConnection
    service = build_service(database)
    app = service.app(background=False)
    transport = httpx2.ASGITransport(app=app, **options)
    async with (
        app.lifespan(),
        httpx2.AsyncClient(transport=transport, base_url=settings.base_url) as http,
    ):
        yield Service(app, http, database, service.runner)


async def empty_service(service: Service, template_url: str) -> None:
    """Empty the database and the caches of a running service."""
    empty_database(service.database.url, template_url)
    await _drop_files_and_caches(service)


async def restore_service(service: Service, state: State) -> None:
    """Put back the rows of a state into the database of a running service. Its files are deleted."""
    restore_database(service.database.url, state)
    await _drop_files_and_caches(service)


async def _drop_files_and_caches(service: Service) -> None:
    shutil.rmtree(service.database.resources.settings.data_dir / "media", ignore_errors=True)
    await service.drop_caches()


async def eventually(condition: Callable[[], Awaitable[object] | object], seconds: float = 60) -> None:
    """Wait until a condition holds. Fails after `seconds`.

    condition    returns whether it holds, or an awaitable that does
    seconds      long, since on a machine that runs four tests the first mail of a service takes up to 15 s
    """
    began = time.monotonic()
    async with asyncio.timeout(seconds):
        while not await _holds(condition):  # noqa: ASYNC110
            await asyncio.sleep(pause_after(time.monotonic() - began))


async def _holds(condition: Callable[[], Awaitable[object] | object]) -> bool:
    answer = condition()
    return bool(await answer if inspect.isawaitable(answer) else answer)


def pause_after(seconds: float) -> float:
    """Seconds until the next look at a condition, by the seconds for which it has been waited for.

    A busy poll would slow down the process that it waits for.
    """
    return min(0.1, max(0.005, seconds / 20))


def event_fields(**fields: Any) -> dict[str, Any]:
    """The body of a free event with 10 seats next month, changed by `fields`."""
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
    return {
        "title": "Life drawing",
        "body": "Bring a pencil. https://example.com/studio",
        "datetime": soon.isoformat().replace("+00:00", "Z"),
        "price": 0,
        "pricing_mode": "free",
        "capacity": 10,
        **fields,
    }


def queue_fields(**fields: Any) -> dict[str, Any]:
    """The body of a queue that releases one visitor a second, changed by `fields`."""
    return {
        "title": "Spring sale",
        "release_rate": 60,
        "target_url": "https://shop.example/sale",
        "token_ttl_minutes": 10,
        **fields,
    }


UNLIMITED: dict[str, Any] = {
    "messages_per_second": 1_000_000,
    "registrations_per_minute": 1_000_000,
    "photos_per_minute": 1_000_000,
    "organizers_per_hour": 1_000_000,
    "refused_organizers_per_hour": 1_000_000,
    "organizers_per_email": 1_000_000,
    "keys_per_hour": 1_000_000,
    "keys_per_organizer": 1_000_000,
    "events_per_organizer": 1_000_000,
    "text_per_organizer": 1_000_000_000,
    "queues_per_organizer": 1_000_000,
    "photos_per_organizer": 1_000_000,
    "joins_per_minute": 1_000_000,
    "room_joins_per_minute": 1_000_000,
    "forms_per_minute": 1_000_000,
    "forms_per_event": 1_000_000,
    "wrong_links_per_minute": 1_000_000,
    "clients_per_hour": 1_000_000,
    "tokens_per_minute": 1_000_000,
    "sign_ins_per_hour": 1_000_000,
    "sign_ins_per_address": 1_000_000,
}
"""Settings of the events service that put rate limits and quotas out of the way."""


def unlimited(database_url: str, data_dir: Path) -> Settings:
    """The defaults, with rate limits and quotas out of the way."""
    return _unlimited_settings().model_copy(update={"data_dir": data_dir, "database_url": database_url})


@functools.cache
def _unlimited_settings() -> Settings:
    return Settings(base_url="http://events.test", **UNLIMITED)


async def publish_event(client: Client, event: dict[str, Any], published: bool = True, **fields: Any) -> dict[str, Any]:
    answer = await client.patch(f"/api/events/{event['id']}", {"event": {"published": published, **fields}})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]
