"""Which owner gives way when a resource that many addresses share is used up."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from holdfast.kit.http.address_holdings import AddressHoldings

ADDRESSES = ["address 192.0.2.1", "address 192.0.2.2", "network 20010db800010001", "network 20010db800010002"]
WIDE = {address: address[: len("network 20010db80001")] if "network" in address else address for address in ADDRESSES}
"""The address that each of them counts as."""


@given(st.lists(st.tuples(st.sampled_from(ADDRESSES), st.booleans()), max_size=200))
def test_the_address_that_holds_most_gives_way_but_never_to_one_that_would_hold_more(
    history: list[tuple[str, bool]],
) -> None:
    holdings, held = AddressHoldings[int](), dict[int, str]()
    for number, (address, adds) in enumerate(history):
        mine = [thing for thing, owner in held.items() if owner == address]
        if adds:
            holdings.add(address, number)
            held[number] = address
        elif mine:
            holdings.remove(address, mine[0])
            del held[mine[0]]

        counts = Counter(WIDE[owner] for owner in held.values())
        excess = holdings.find_excess(address)

        if excess is None:
            assert max(counts.values(), default=0) <= counts[WIDE[address]] + 1
        else:
            assert counts[WIDE[held[excess]]] == max(counts.values())
            assert counts[WIDE[held[excess]]] >= counts[WIDE[address]] + 2


@given(st.lists(st.integers(0, 9), min_size=1, max_size=300), st.integers(10, 30))
def test_an_address_in_any_crowd_holds_a_place(wishes: list[int], room: int) -> None:
    """There is room for one of each, and each asks for as many as it likes."""
    holdings, held = AddressHoldings[int](), dict[int, str]()
    for number, wish in enumerate(wishes):
        address = f"address 192.0.2.{wish}"
        if len(held) == room:
            excess = holdings.find_excess(address)
            if excess is None:
                continue
            holdings.remove(held.pop(excess), excess)
        holdings.add(address, number)
        held[number] = address

    assert {f"address 192.0.2.{wish}" for wish in wishes} == set(held.values())
    assert len(held) <= room


def test_an_idle_holding_gives_way_before_others() -> None:
    holdings = AddressHoldings[int]()
    for number in range(5):
        holdings.add("address 192.0.2.1", number)

    assert holdings.find_excess("address 192.0.2.2", lambda thing: thing == 1) == 1
    assert holdings.find_excess("address 192.0.2.2", lambda _: False) == 4
