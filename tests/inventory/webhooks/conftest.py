import pytest

from tests.inventory.webhooks.programs import programs_of

programs = pytest.fixture(programs_of)
