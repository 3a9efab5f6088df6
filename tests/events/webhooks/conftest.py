import pytest

from tests.helpers.webhook_programs import programs_of

programs = pytest.fixture(programs_of)
