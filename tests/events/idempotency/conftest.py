"""Fixtures of the tests of repeated requests."""

import pytest

from tests.events.idempotency.idempotency_scene import OTHER_PHOTO, PHOTO, IdempotencyScene
from tests.helpers.events_service import Service
from tests.helpers.photos import accept_photos


@pytest.fixture
async def scene(service: Service) -> IdempotencyScene:
    ada = await service.organizer()
    await accept_photos(service, PHOTO, OTHER_PHOTO)
    return IdempotencyScene(service, ada, (await ada.create_event())["id"], (await ada.create_queue())["id"])
