"""The page of bounds lists every limit of the code that callers share."""

import re
from collections.abc import Iterator

from holdfast.kit.contract.bounds import Bound
from tests.programs.bounds import (
    EXCEPTIONS,
    PAGE,
    all_bounds,
    known_limits,
    limits_without_bound,
    names_twice,
    page,
    settings_with_defaults,
    unnamed_limits,
)


def texts(bound: Bound) -> Iterator[str]:
    """What a bound says."""
    for field in Bound.__struct_fields__:
        yield getattr(bound, field)


def test_the_page_of_bounds_is_that_of_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.programs.bounds"


def test_every_limit_that_callers_share_has_a_bound() -> None:
    """Name it in a `Bound`, with the share of each owner; or say in `tests/programs/bounds.py` why nobody shares it."""
    assert limits_without_bound() == []


def test_every_rate_limit_has_a_bound() -> None:
    assert unnamed_limits() == {"events": set(), "inventory": set()}


def test_every_exception_is_a_limit_in_the_code() -> None:
    assert EXCEPTIONS - known_limits() == set()


def test_no_two_bounds_of_a_service_have_one_name() -> None:
    assert names_twice(all_bounds()) == []


def test_every_bound_says_something_about_each_owner() -> None:
    assert [text for bound in all_bounds() for text in texts(bound) if not text.strip() or "|" in text] == []
    assert [bound.name for bound in all_bounds() if not bound.stranger.endswith(".")] == []


def test_every_setting_that_a_bound_names_is_one() -> None:
    named = {name for bound in all_bounds() for text in texts(bound) for name in re.findall(r"`([A-Z_]{4,})`", text)}

    assert named - settings_with_defaults().keys() - {"TRUSTED_PROXIES"} == set()
