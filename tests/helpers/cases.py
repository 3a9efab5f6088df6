"""Cases that one test tries in turn, in one scene: for what is read or refused, so that no case changes another."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

AsyncTest = Callable[..., Awaitable[None]]


def in_turn(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[AsyncTest], AsyncTest]:
    """Try these cases as `pytest.mark.parametrize` would, but in one test. Every case that fails is named.

    A scene costs more than most cases, and each test 4 ms beside that.
    """
    names_of_case = (names,) if isinstance(names, str) else names
    tried = [dict(zip(names_of_case, (case,) if isinstance(names, str) else case, strict=True)) for case in cases]

    def decorate(test: AsyncTest) -> AsyncTest:
        @functools.wraps(test)
        async def tests_all(*, subtests: pytest.Subtests, **fixtures: Any) -> None:
            for case in tried:
                with subtests.test(**case):
                    await test(**fixtures, **case)

        own_parameters = inspect.signature(test).parameters.values()
        parameters = [parameter for parameter in own_parameters if parameter.name not in names_of_case]
        subtests = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        setattr(tests_all, "__signature__", inspect.Signature([*parameters, subtests]))  # noqa: B010
        return tests_all

    return decorate
