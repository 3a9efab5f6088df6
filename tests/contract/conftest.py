"""Tests of the contract make organizers of their own, in one service: what a service holds besides changes no promise.

Those that look at everything there is, or that let time pass for all, use `new_service`.
"""

from collections.abc import AsyncIterator

import pytest

from tests.helpers.events_service import Service


@pytest.fixture
async def service(common_service: Service) -> AsyncIterator[Service]:
    """The service of the worker, in which nothing waits to be settled when a test begins."""
    yield common_service
    await common_service.settle()
