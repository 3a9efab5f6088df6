"""A process is killed, or stops, at each step from a commit to the signed head: the log loses and repeats nothing."""

import asyncio
from pathlib import Path

import pytest

from holdfast.events.log import sealing, sql
from holdfast.events.service import EVENTS
from holdfast.events.settings import Settings
from tests.events.log.log_scene import LogScene, open_log
from tests.faults.pair import pair
from tests.helpers.background_loops import run_in_background
from tests.helpers.data_directories import wait_until
from tests.helpers.events_service import Client, Service, eventually, running_events
from tests.helpers.locked_rows import hold_locks
from tests.helpers.processes import Process
from tests.helpers.sealing import seal_once

BETWEEN_SETTLEMENT_AND_SEAL = f"select pg_advisory_xact_lock({sql.ADVISORY_LOCK_ID})"
WITHIN_THE_SEAL = "lock table log_tiles in access exclusive mode"
BETWEEN_SEAL_AND_SIGNATURE = "lock table log_keys in access exclusive mode"

SEALED_SIZE = "select size from logs join log_heads on log_id = logs.id where event_id is not null"
"""Reads the number of sealed entries of the log of the only event."""


class SealingScene:
    """An event and its log, a process that does the work, and a service in this process that shows the log."""

    def __init__(self, service: Service, process: Process, ada: Client, event_id: int) -> None:
        self.service, self.process = service, process
        self.log = LogScene(service, 0, f"/log/events/{event_id}")
        self.url = service.database.url
        self._ada, self._event_id = ada, event_id
        self._people = 0
        self._checkpoint = b""

    async def register(self, count: int) -> None:
        for _ in range(count):
            self._people += 1
            await self._ada.register(self._event_id, email=f"n{self._people}@example.com")

    async def has_settled(self) -> bool:
        [(settled,)] = await self.service.run_sql("select max(arrivals) from logs")
        return settled == self._people

    async def is_at_rest(self) -> bool:
        """Whether nothing waits to be sealed or signed, in the head log either."""
        [(is_done,)] = await self.service.run_sql(
            "select not exists (select from log_pending)"
            " and not exists (select from log_heads where signed_size < size)"
        )
        return is_done

    async def nothing_more_is_served(self, *, is_sealed: bool) -> None:
        """The head is still the one that was read last, and nothing beyond it can be had, also if it is sealed."""
        size = self.log.heads[-1].size
        [(sealed_size,)] = await self.service.run_sql(SEALED_SIZE)
        assert (sealed_size > size) == is_sealed
        assert await self.log.content("/checkpoint") == self._checkpoint
        for path in (f"/tile/entries/000.p/{size + 1}", f"/tile/0/000.p/{size + 1}", f"/proofs/{self._people}"):
            assert (await self.log.get(path)).status_code == 404

    async def all_is_logged_once(self) -> None:
        """Every person is in the signed log, once and in order, and it begins with all heads that were read."""

        async def is_signed() -> bool:
            [(is_done,)] = await self.service.run_sql(
                "select not exists (select from log_pending where kind <> 'head') and not exists ("
                "select from logs join log_heads on log_id = logs.id where event_id is not null and signed_size < size)"
            )
            return is_done

        await eventually(is_signed)
        entries = await self.log.read()
        assert [entry["number"] for entry in entries if entry["kind"] == "arrival"] == [*range(1, self._people + 1)]
        self._checkpoint = await self.log.content("/checkpoint")


async def test_every_registration_is_logged_once_even_if_the_sealing_process_is_killed_or_stops(
    settings: Settings, tmp_path: Path
) -> None:
    process = Process(settings.database_url, tmp_path, base_url=settings.base_url)
    try:
        async with running_events(settings) as service:
            ada = await service.organizer()
            event = await ada.create_event(capacity=100)
            scene = SealingScene(service, process, ada, event["id"])
            await scene.register(2)
            await eventually(scene.has_settled)
            await scene.all_is_logged_once()

            for step in (BETWEEN_SETTLEMENT_AND_SEAL, WITHIN_THE_SEAL, BETWEEN_SEAL_AND_SIGNATURE):
                # Otherwise the process could wait at this step for an earlier head.
                await eventually(scene.is_at_rest)
                async with hold_locks(scene.url, step) as holder:
                    await scene.register(3)
                    if step == BETWEEN_SETTLEMENT_AND_SEAL:
                        await eventually(scene.has_settled)
                    else:
                        await holder.wait_for_waiters()
                    await asyncio.to_thread(process.kill)
                    assert not await seal_once(service.database)
                    await scene.nothing_more_is_served(is_sealed=step == BETWEEN_SEAL_AND_SIGNATURE)
                async with run_in_background(sealing.LOOP.run(service.database)):  # this process seals and signs too
                    await asyncio.to_thread(process.start)
                    await scene.register(1)
                    await eventually(scene.has_settled)
                    await scene.all_is_logged_once()

            # It stops within its transaction, which PostgreSQL ends. When it wakes up, another one has sealed.
            await eventually(scene.is_at_rest)
            async with hold_locks(scene.url, WITHIN_THE_SEAL) as holder:
                await scene.register(3)
                await holder.wait_for_waiters()
                await eventually(scene.has_settled)
                process.suspend()
            async with run_in_background(sealing.LOOP.run(service.database)):  # this process seals and signs too
                await scene.all_is_logged_once()
                process.resume()
                await scene.register(3)
                await eventually(scene.has_settled)
                await scene.all_is_logged_once()
    finally:
        process.kill()


async def test_a_head_that_the_standby_may_not_have_is_not_signed(settings: Settings) -> None:
    with pair() as servers:
        EVENTS.migrate(servers.primary_url)
        async with running_events(settings.model_copy(update={"database_url": servers.url})) as service:
            log = await open_log(service, seal=True)
            await log.arrive(3)
            before = await log.content("/checkpoint")
            with servers.cut_off():
                seal = asyncio.create_task(seal_once(service.database))
                await asyncio.to_thread(wait_until, servers.waiting)
                # An operator loses patience: what is sealed becomes visible, and the standby does not have it.
                servers.cancel_waiting()
                with pytest.raises(Exception, match="not confirmed"):
                    await seal
                assert await service.run_sql(SEALED_SIZE) == [(6,)]
                sign = asyncio.create_task(sealing.sign(service.database))
                await asyncio.to_thread(wait_until, servers.waiting)
                servers.cancel_waiting()
                with pytest.raises(Exception, match="not confirmed"):
                    await sign
                assert await log.content("/checkpoint") == before
            assert await sealing.sign(service.database) == 1
            servers.kill_primary()
            await asyncio.to_thread(servers.promote)

            async def is_there() -> bool:
                return (await log.get("/checkpoint")).status_code == 200

            await eventually(is_there)
            assert (await log.read_head()).size == 6
            assert len(await log.read()) == 6
