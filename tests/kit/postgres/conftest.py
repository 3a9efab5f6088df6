"""Fixtures of the tests of the kit's PostgreSQL."""

from collections.abc import Iterator

import pytest

from tests.helpers.databases import scratch_database


@pytest.fixture
def empty_url(template_url: str) -> Iterator[str]:
    """A database with nothing in it."""
    with scratch_database(template_url, "empty", "template template0") as url:
        yield url
