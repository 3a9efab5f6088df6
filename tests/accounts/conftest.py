"""Fixtures of the tests of accounts."""

import pytest

from tests.helpers.events_service import Service


@pytest.fixture
def service(new_service: Service) -> Service:
    """The service of a test."""
    return new_service
