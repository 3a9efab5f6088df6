import pytest

from tests.inventory.outgoing_webhooks.programs import programs_of

programs = pytest.fixture(programs_of)
