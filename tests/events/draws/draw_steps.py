"""A list that is drawn by a real round of the beacon, whose time a test moves to one hour from now."""

import datetime as dt
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import psycopg
import pytest

from holdfast.events.draws import drawing
from holdfast.events.draws.model import DrawSubject
from holdfast.events.log import sealing
from holdfast.events.log.generations import begin_generations
from holdfast_verify.audit.audit import Audit
from holdfast_verify.audit.draw import check_draw
from holdfast_verify.formats import beacon
from holdfast_verify.formats.drawn_order import PAUSE, draw_order
from holdfast_verify.formats.tree import append, leaf_hash, parse_bundle
from tests.events.draws.beacon_double import BeaconDouble, serving_beacon
from tests.helpers.events_service import Service
from tests.helpers.outside_servers import client_reaching
from tests.helpers.sealing import seal_once

PEOPLE = ["ann", "bob", "cyd", "dan", "eve", "flo", "gus"]

ROUND = 657413
RULES = {"form", "release", "numbers", "outcome", "promotion", "status", "capacity", "counts"}
"""The rules that an audit of a scene holds. The times of a scene are not real."""

OF_A_LIST = """
    where log_id = (select id from logs where num_nonnulls(event_id, queue_id) = 1 order by generation desc limit 1)
"""
"""The newest log of the list, and not the head log."""


@dataclass
class DrawSteps:
    """A service with one list, which closes at `closes`. Nothing is sealed, frozen or drawn by itself."""

    service: Service
    closes: dt.datetime
    beacon: BeaconDouble
    subject: DrawSubject

    @property
    def round_at(self) -> dt.datetime:
        return self.closes + PAUSE

    async def seal(self) -> None:
        """Seal and sign the log."""
        await seal_once(self.service.database)
        await sealing.sign(self.service.database)

    async def freeze(self, seconds: float = 1) -> bool:
        """Freeze what is due, this many seconds after the list closes. Returns whether it waits for its log."""
        now = self.closes + dt.timedelta(seconds=seconds)
        return await drawing.freeze_due(self.service.database, self.subject, now)

    def restore(self) -> None:
        """Let the database be one that was restored from a backup, which was made just now."""
        with psycopg.connect(self.service.database.url, autocommit=True) as connection:
            begin_generations(connection)

    async def draw(self, seconds: float = 121) -> None:
        """Draw what is due, this many seconds after the list closes."""
        self.beacon.now = now = self.closes + dt.timedelta(seconds=seconds)
        await drawing.draw_due(self.service.database, self.subject, drawing.RoundFetcher(), now)

    async def order(self) -> list[int]:
        """The tickets in the order that the seed gives."""
        noun, key = self.subject.noun, self.subject.key
        ((seed, entries),) = await self.service.run_sql(
            f"select seed, entries from {noun}_draws join {noun}_freezes using ({key})"
        )
        return draw_order(seed, entries)

    async def log(self) -> list[dict[str, Any]]:
        """The sealed entries of the log."""
        return [msgspec.json.decode(entry) for entry in await self._entries()]

    async def faults(self) -> list[str]:
        """What an audit of the sealed log finds wrong."""
        entries = await self._entries()
        ((origin,),) = await self.service.run_sql(f"select origin from log_heads {OF_A_LIST}")
        audit = Audit(origin)
        for entry in entries:
            audit.read(entry)
        findings = [finding.message for finding in audit.findings if finding.rule in RULES]
        leaves = [leaf_hash(entry) for entry in entries]
        return findings + check_draw(await self.log(), origin, lambda size: append(0, {}, leaves[:size]).root)

    async def _entries(self) -> list[bytes]:
        rows = await self.service.run_sql(f"select entries from log_entries {OF_A_LIST} order by number")
        return [entry for (content,) in rows for entry in parse_bundle(content)]


@asynccontextmanager
async def list_closing(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[tuple[dt.datetime, BeaconDouble]]:
    """When a list closes whose round is real, and the beacon."""
    ((now,),) = await service.run_sql("select date_trunc('second', now())")
    closes = now + dt.timedelta(hours=1)
    # A real signature exists only of a round that is past.
    monkeypatch.setattr(beacon, "GENESIS", closes + PAUSE - (ROUND - 1) * beacon.PERIOD)
    async with serving_beacon(now) as double:
        resources = service.database.resources
        settings = resources.settings.model_copy(update={"beacon_url": double.server.url.rstrip("/")})
        service.database.resources = replace(resources, settings=settings, beacon=client_reaching(double.server))
        try:
            yield closes, double
        finally:
            service.database.resources = resources
