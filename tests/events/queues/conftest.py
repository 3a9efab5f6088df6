"""Fixtures of the tests of queues."""

import pytest

from tests.events.queues.scene import QueueScene, open_line
from tests.support import Service


@pytest.fixture
async def line(service: Service) -> QueueScene:
    """A queue that releases one visitor a second."""
    return await open_line(service)
