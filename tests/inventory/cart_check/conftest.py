"""The function, started once for a file of tests."""

from collections.abc import Generator

import pytest

from tests.inventory.cart_check.function import Running, running


@pytest.fixture(scope="module")
def function() -> Generator[Running]:
    with running() as function:
        yield function
