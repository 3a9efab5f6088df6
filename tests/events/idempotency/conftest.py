"""Fixtures of the tests of repeated requests."""

import pytest

from tests.events.idempotency.scene import OTHER_PHOTO, PHOTO, Scene
from tests.helpers.photos import accept_photos
from tests.support import Service


@pytest.fixture
async def scene(service: Service) -> Scene:
    ada = await service.organizer()
    await accept_photos(service, PHOTO, OTHER_PHOTO)
    return Scene(service, ada, (await ada.create_event())["id"], (await ada.create_queue())["id"])
