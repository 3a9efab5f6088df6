"""Fixtures of the endpoint for agents: the pantry, and agents that call it."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from tests.helpers.agents import STATELESS, Agent, Kitchen, open_kitchen
from tests.helpers.databases import scratch_database
from tests.kit.mcp.pantry import SCHEMA, Pantry


@pytest.fixture(scope="session")
def pantry_database(template_url: str) -> Iterator[tuple[str, psycopg.Connection[Any]]]:
    """A database for every test of the pantry: there are many, and filling it again is quicker than another one."""
    with (
        scratch_database(template_url, "pantry", "template template0") as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        yield url, connection


@pytest.fixture
def pantry_url(pantry_database: tuple[str, psycopg.Connection[Any]]) -> str:
    """A database with the tables of the pantry, as they were on the first day."""
    url, connection = pantry_database
    connection.execute(SCHEMA)
    return url


@pytest.fixture
async def kitchen(pantry_url: str) -> AsyncIterator[Kitchen]:
    """The pantry, open for agents."""
    async with open_kitchen(Pantry(pantry_url)) as kitchen:
        yield kitchen


@pytest.fixture(params=["2025-11-25", STATELESS])
async def agent(kitchen: Kitchen, request: pytest.FixtureRequest) -> Agent:
    """An agent that may do everything, of either era in turn."""
    return await kitchen.agent("read_jars", "write_jars", version=request.param)


@pytest.fixture
async def old(kitchen: Kitchen) -> Agent:
    """An agent of the handshake era that may do everything."""
    return await kitchen.agent("read_jars", "write_jars")


@pytest.fixture
async def new_agent(kitchen: Kitchen) -> Agent:
    """An agent of 2026-07-28 that may do everything."""
    return await kitchen.agent("read_jars", "write_jars", version=STATELESS)
