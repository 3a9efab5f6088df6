"""Fixtures of the tests of queues."""

import pytest

from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.events_service import Service


@pytest.fixture
async def queue(service: Service) -> QueueScene:
    """A queue that releases one visitor a second."""
    return await open_queue(service)
