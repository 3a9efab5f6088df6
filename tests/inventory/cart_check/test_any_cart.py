"""The function stops a cart exactly if a pool has less than its lines take together."""

import os
from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.inventory.cart_check.conftest import CartLine, Running, numbers

EXAMPLES = 20_000 if os.environ.get("HOLDFAST_SOAK") else 300

POOLS = range(1, 5)
amounts = st.one_of(st.integers(0, 60), st.integers(-5, 10**12))
quantities = st.one_of(st.integers(1, 12), st.integers(1, 2**31 - 1))


@st.composite
def carts(draw: st.DrawFn) -> list[CartLine]:
    """Lines of up to five variants, whose numbers were written at three versions, or are not there."""
    sellable = {(pool, version): draw(amounts) for pool in POOLS for version in range(3)}
    written = [
        numbers(
            *(
                (pool, draw(st.integers(1, 12)), sellable[pool, version])
                for pool in draw(st.lists(st.sampled_from(POOLS), unique=True, max_size=3))
            ),
            v=version,
            until=draw(st.sampled_from(["2026-11-21", "2026-11-22", "2026-12-01"])),
        )
        for version in draw(st.lists(st.integers(0, 2), min_size=1, max_size=5))
    ]
    known = [*written, None]
    chosen = draw(st.lists(st.integers(0, len(written)), max_size=8))
    return [CartLine(variant, draw(quantities), known[variant]) for variant in chosen]


def is_short(lines: Sequence[CartLine]) -> bool:
    """Whether a pool has too little for these lines."""
    drawn: dict[int, int] = {}
    newest: dict[int, tuple[int, int]] = {}
    for line in lines:
        if line.numbers and line.numbers["until"] >= "2026-11-22":
            for pool, units, sellable in line.numbers["pools"]:
                drawn[pool] = drawn.get(pool, 0) + line.quantity * units
                newest[pool] = max(newest.get(pool, (-1, 0)), (line.numbers["v"], sellable))
    return any(drawn[pool] > sellable for pool, (_, sellable) in newest.items())


@given(lines=carts())
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
def test_a_cart_is_stopped_exactly_if_a_pool_has_too_little_for_it(function: Running, lines: list[CartLine]) -> None:
    assert bool(function.says(*lines)) == is_short(lines)
