"""What each address holds of something that is limited, such as connections.

When nothing is left, the address that holds the most gives one of its things to an address that holds few. So what a
crowd from few addresses has taken is given to others, and no address can keep others out.
"""

import itertools
from collections.abc import Callable
from typing import Generic, TypeVar

from holdfast.kit.contract.client import path_of

T = TypeVar("T")

MAX_COMPARED = 32
"""How many of the newest things of one address are compared, to find the one that gives way."""


class AddressHoldings(Generic[T]):
    """The things that each address holds. All networks of /64 in one of /48 count as one address.

    Each step takes the same time, however many things and addresses there are.
    """

    def __init__(self) -> None:
        self._things: dict[str, dict[T, None]] = {}
        """The things of each address, the oldest first."""
        self._addresses: dict[int, dict[str, None]] = {}
        """The addresses that hold so many things."""
        self._max_held = 0

    def __len__(self) -> int:
        return len(self._things)

    def add(self, source: str, thing: T) -> None:
        address = path_of(source)[0]
        things = self._things.setdefault(address, {})
        self._move(address, len(things), len(things) + 1)
        things[thing] = None

    def remove(self, source: str, thing: T) -> None:
        """Remove a thing that was added."""
        address = path_of(source)[0]
        things = self._things[address]
        del things[thing]
        self._move(address, len(things) + 1, len(things))
        if not things:
            del self._things[address]

    def find_excess(self, source: str, is_idle: Callable[[T], bool] = lambda _: True) -> T | None:
        """Find what the address that holds the most has to give to an address that wants one more.

        That is one of its newest things, best an idle one. None: no address would then hold as many as the one that
        wants it, or more.
        """
        mine = self._things.get(path_of(source)[0], {})
        if self._max_held < len(mine) + 2:
            return None
        largest = next(iter(self._addresses[self._max_held]))
        newest = [*itertools.islice(reversed(self._things[largest]), MAX_COMPARED)]
        return next((thing for thing in newest if is_idle(thing)), newest[0])

    def _move(self, address: str, before: int, after: int) -> None:
        """Remember that an address holds one thing more or less than before."""
        if before:
            del self._addresses[before][address]
        if after:
            self._addresses.setdefault(after, {})[address] = None
        if before and not self._addresses[before]:
            del self._addresses[before]
        if after > self._max_held or (before == self._max_held and before not in self._addresses):
            self._max_held = after
