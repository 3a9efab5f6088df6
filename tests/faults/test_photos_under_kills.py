"""Photos come and go while the process is killed: none that was answered for is lost, and no file is forgotten.

Their sizes are made by the processes that are killed, and what these have left half done is done afterwards.
"""

import asyncio
import contextlib
import os
import random
from pathlib import Path

import httpx2

from holdfast.events.photos.model import size_name
from holdfast.events.photos.retention import clear_photos
from holdfast.events.photos.sizes import SizesWork
from holdfast.kit.operations.steps import Steps
from holdfast.kit.security.http_client import HttpClient
from tests.helpers.events_service import eventually, running_events, unlimited
from tests.helpers.photos import a_day_passes, photo_states, stored_files
from tests.helpers.pictures import picture
from tests.helpers.processes import Process, organizer_at, running_processes
from tests.helpers.row_work import handle_all
from tests.helpers.serving import PLAIN

KILLS = 20 if "HOLDFAST_SOAK" in os.environ else 3
BETWEEN = 12
"""Answers from one kill to the next, on average."""


class PhotoOrganizer:
    """An organizer who adds photos to its own event, and takes some of them off again."""

    def __init__(self, process: Process, number: int) -> None:
        self.process = process
        self.number = number
        self.added: set[str] = set()
        self.removed: set[str] = set()
        self.unsure: set[str] = set()
        self.key = ""
        self.event = 0

    async def begin(self) -> None:
        named = {"email": f"{self.number}@example.com", "slug": f"ada-{self.number}"}
        async with organizer_at(self.process.url, **named) as ada:
            self.key, self.event = ada.key or "", (await ada.create_event())["id"]

    async def change_photos(self) -> None:
        """Add one photo, and perhaps take it off."""
        content = picture("image/png", 20 + self.number, 20)
        photos = f"/api/events/{self.event}/photos"
        async with HttpClient(
            verify=PLAIN, base_url=self.process.url, headers={"X-API-Key": self.key}, timeout=30
        ) as http:
            wish = {"content_type": "image/png", "content_length": len(content)}
            upload = (await http.post("/api/uploads/presign", json=wish)).json()["data"]
            key = upload["key"]
            await http.put(upload["upload_url"], content=content, headers={"Content-Type": "image/png"})
            self.unsure.add(key)
            assert (await http.post(photos, json={"key": key})).status_code == 201
            self.added.add(key)
            self.unsure.discard(key)
            if random.random() < 0.5:
                self.unsure.add(key)
                assert (await http.delete(photos, params={"key": key})).status_code == 200
                self.removed.add(key)
                self.unsure.discard(key)


async def test_no_photo_is_lost_and_no_file_forgotten_whatever_is_killed(database_url: str, tmp_path: Path) -> None:
    with running_processes(database_url, tmp_path, 1) as (process,):
        organizers = [PhotoOrganizer(process, number) for number in range(6)]
        for organizer in organizers:
            await organizer.begin()
        over = asyncio.Event()

        def added() -> int:
            return sum(len(organizer.added) for organizer in organizers)

        async def keep_on(organizer: PhotoOrganizer) -> None:
            while not over.is_set() and len(organizer.added - organizer.removed) < 40:
                with contextlib.suppress(httpx2.TransportError):
                    await organizer.change_photos()

        async def kill_now_and_then() -> None:
            for _ in range(KILLS):
                target = added() + random.randint(1, 2 * BETWEEN)
                await eventually(lambda target=target: added() >= target, seconds=60)
                process.kill()
                process.start()
            over.set()

        await asyncio.gather(kill_now_and_then(), *map(keep_on, organizers))

    async with running_events(unlimited(database_url, tmp_path)) as service:
        await a_day_passes(service)
        await clear_photos(Steps(service.database))
        await handle_all(SizesWork(service.database))

        event_keys = {key for (keys,) in await service.run_sql("select image_keys from events") for key in keys}
        unsure = {key for organizer in organizers for key in organizer.unsure}
        answered_for = {key for organizer in organizers for key in organizer.added - organizer.removed}
        assert answered_for - unsure <= event_keys <= answered_for | unsure
        widths = await service.run_sql("select key, widths from photos")
        sizes = {size_name(key, width) for key, file_widths in widths for width in file_widths}
        assert len(sizes) == len(event_keys)
        assert stored_files(service) == event_keys | sizes
        assert stored_files(service, "uploads") == set()
        assert await photo_states(service) == dict.fromkeys(event_keys, "accepted")
        for name in event_keys | sizes:
            assert (await service.http.get(f"/media/{name}")).status_code == 200
