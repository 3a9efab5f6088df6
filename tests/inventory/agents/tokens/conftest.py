"""Fixtures of the tests of tokens."""

from collections.abc import AsyncIterator

import pytest

from tests.inventory.agents.tokens.tickets import TABLE, Signing, process, run_sql


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Signing]:
    async with process(database_url) as database:
        await run_sql(database, TABLE)
        yield database
