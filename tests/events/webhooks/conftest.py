import pytest

from tests.events.webhooks.programs import programs_of

programs = pytest.fixture(programs_of)
