"""Fixtures of the kit's tests."""

import pytest

from tests.kit.boxes import make
from tests.support import Service


@pytest.fixture
async def boxes(service: Service) -> Service:
    """A service whose database has two empty boxes to fight over."""
    await make(service)
    return service
