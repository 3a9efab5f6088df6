"""Fixtures of the tests of sending webhooks. Their messages are those of the events service."""

import pytest

from tests.helpers.events_service import Service
from tests.helpers.webhook_programs import programs_of


@pytest.fixture
def service(new_service: Service) -> Service:
    """The service of a test."""
    return new_service


programs = pytest.fixture(programs_of)
