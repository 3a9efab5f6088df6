"""Fixtures of the tests of queues."""

import pytest

from tests.events.queues.scene import Line, open_line
from tests.support import Service


@pytest.fixture
async def line(service: Service) -> Line:
    """A queue that releases one visitor a second."""
    return await open_line(service)
