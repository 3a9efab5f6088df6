"""Fixtures of the tests of the kit's PostgreSQL."""

import os
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo


@pytest.fixture
def empty_url(template_url: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with nothing in it."""
    name = f"empty_{os.getpid()}_{abs(hash(request.node.nodeid)):x}"
    with psycopg.connect(make_conninfo(template_url, dbname="postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        yield make_conninfo(template_url, dbname=name)
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
