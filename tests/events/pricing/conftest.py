"""Fixtures of the tests of prices."""

import pytest

from tests.events.pricing.sale import Sale, open_sale
from tests.helpers.events_service import Service


@pytest.fixture
async def sale(service: Service) -> Sale:
    return await open_sale(service)
