"""The first import of a shop begins when the app is installed, and goes on when its next look is due."""

import pytest

from holdfast.inventory.catalog.part import PART
from holdfast.inventory.settings import Settings
from holdfast.kit.background import tasks
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import eventually
from tests.helpers.platform_shop import BASE_URL, open_platform_scene


async def test_the_first_import_is_done_by_notification_without_a_poll(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "POLL_SECONDS", 3600.0)
    async with open_platform_scene(settings) as scene:

        async def is_done() -> bool:
            return bool(await scene.inventory.sql("select from catalogs where finished_at is not null"))

        async def is_waiting() -> bool:
            return bool(await scene.inventory.sql("select from procrastinate_workers"))

        async with run_in_background(tasks.run_tasks(scene.inventory.database, PART.tasks, ())):
            await eventually(is_waiting)
            await scene.install(BASE_URL)
            await eventually(is_done, 20)
