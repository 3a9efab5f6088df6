"""Cases that are tried in turn are all tried, and each that fails is named."""

import contextlib
import inspect
from collections.abc import Generator
from typing import Any

import pytest

from tests.helpers.cases import in_turn


class NotedSubtests:
    """Takes the place of pytest's own, and keeps what failed."""

    def __init__(self) -> None:
        self.failed: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def test(self, **case: Any) -> Generator[None]:
        try:
            yield
        except AssertionError:
            self.failed.append(case)


async def test_all_cases_of_a_test_are_tried_and_failed_ones_are_named() -> None:
    tried: list[tuple[int, int]] = []

    @in_turn(("a", "b"), [(1, 1), (1, 2), (2, 2), (2, 3)])
    async def both_are_the_same(limit: int, a: int, b: int) -> None:
        assert limit == 9
        tried.append((a, b))
        assert a == b

    subtests = NotedSubtests()
    await both_are_the_same(limit=9, subtests=subtests)

    assert tried == [(1, 1), (1, 2), (2, 2), (2, 3)]
    assert subtests.failed == [{"a": 1, "b": 2}, {"a": 2, "b": 3}]
    assert [*inspect.signature(both_are_the_same).parameters] == ["limit", "subtests"]


@in_turn("number", [1, 2, 3])
async def test_a_test_with_cases_gets_its_fixtures(number: int, tmp_path: Any) -> None:
    (tmp_path / "number").write_text(f"{number}")
    assert number in {1, 2, 3}


@in_turn("number", [1])
async def test_a_failed_case_fails_its_test(number: int) -> None:
    with pytest.raises(AssertionError):
        assert number == 2
