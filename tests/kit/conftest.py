"""Fixtures of the kit's tests."""

import pytest

from tests.helpers.events_service import Service


@pytest.fixture
async def boxes(service: Service) -> Service:
    """A service whose database has two empty boxes to fight over."""
    await service.run_sql("create table boxes (id int primary key, content int not null default 0)")
    await service.run_sql("insert into boxes values (1), (2)")
    return service
