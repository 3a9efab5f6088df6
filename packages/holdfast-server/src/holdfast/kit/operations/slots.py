"""Slots: how much work of one owner runs concurrently. What waits takes turns, owner by owner.

An owner is a path, such as `("strangers", "address 192.0.2.1")`. Each element limits those after it: all strangers
together have some of the slots, and each address has some of these. While few want slots, each owner may use nearly all
of them. While many wait, the next slot goes to another address, whatever each of them has waiting. So a crowd from one
address waits for itself, and others wait for one turn.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from types import TracebackType

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.caller import Owner
from holdfast.kit.contract.client import wait_while_connected
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem

SLOT_TIMEOUT_SECONDS = 5
"""Seconds that requests wait for other work of the same owner."""

MAX_WAITING = 200
"""The maximum number of waiting pieces of work of one tenant, address or network."""

MAX_WAITING_TOGETHER = 4_000
"""The maximum number of waiting pieces of work of owners that share slots, such as all strangers together."""

WaitingTurn = asyncio.Future[None]


class OwnerNode:
    """One element of the path of an owner: what runs and waits of it, and of the nodes below."""

    __slots__ = ("above", "below", "key", "max_running", "max_waiting", "running", "turns", "waiting", "waiting_below")

    def __init__(self, key: Hashable, above: "OwnerNode | None", max_running: int, max_waiting: int) -> None:
        self.key = key
        self.above = above
        self.max_running = max_running
        self.max_waiting = max_waiting
        self.running = 0
        self.waiting = 0
        self.below: dict[Hashable, OwnerNode] = {}
        self.waiting_below: OrderedDict[Hashable, OwnerNode] = OrderedDict()
        """The nodes below that wait, in the order of their next turns."""
        self.turns: deque[WaitingTurn] = deque()
        """The turns that wait at this node itself, in order of arrival. A turn that is done was refused, or its caller
        has gone.
        """

    def upwards(self) -> "Iterator[OwnerNode]":
        node: OwnerNode | None = self
        while node:
            yield node
            node = node.above

    @property
    def has_free_slot(self) -> bool:
        return self.running < self.max_running

    @property
    def can_begin(self) -> bool:
        """Whether there is a free slot here and at all nodes above."""
        return all(element.has_free_slot for element in self.upwards())


class Slots:
    """At most `max_running` pieces of work of one owner run concurrently, in order of arrival.

    bound                   what is limited, for the page of all bounds
    max_per_address         the maximum of one address or network; None: one less than `max_running`, at least 1
    timeout                 the maximum number of seconds that a piece of work waits; None: no maximum
    max_waiting             the maximum number of waiting pieces of work of one tenant, address or network
    max_waiting_together    the maximum of all owners that share slots
    retry_after             returns the seconds after which refused work should come again
    """

    def __init__(
        self,
        bound: Bound,
        max_running: int,
        *,
        max_per_address: int | None = None,
        timeout: float | None = None,
        max_waiting: int = MAX_WAITING,
        max_waiting_together: int = MAX_WAITING_TOGETHER,
        retry_after: Callable[[], int] = lambda: 1,
    ) -> None:
        self.bound = bound
        self._max_running = max_running
        self._max_per_address = max_per_address or max(1, max_running - 1)
        self._max_waiting = max_waiting
        self._max_waiting_together = max(max_waiting, max_waiting_together)
        self._timeout = timeout
        self._retry_after = retry_after
        self._owners: dict[Hashable, OwnerNode] = {}

    def slot_of(self, owner: Owner) -> "Slot":
        """A slot, for as long as an `async with` block lasts.

        Entering it raises `service_unavailable` if too much work of the owner waits, or if it waits too long.
        """
        return Slot(self, owner)

    def require_capacity(self, owner: Owner) -> None:
        """Raise `service_unavailable` if one more piece of work of an owner would be refused now."""
        node = self._node_of(owner)
        try:
            if not node.can_begin:
                self._find_yielding_node(node)
        finally:
            self._forget(node)

    async def take(self, owner: Owner) -> OwnerNode:
        """Take a slot, in its turn. The result is given to `release`."""
        node = self._node_of(owner)
        if node.can_begin:
            _begin(node)
            return node
        self._make_waiting_place(node)
        turn: WaitingTurn = asyncio.get_running_loop().create_future()
        _wait(node, turn)
        try:
            async with asyncio.timeout(self._timeout):
                await wait_while_connected(turn)
        except TimeoutError as error:
            self._leave(node, turn)
            whose = "Earlier requests" if node.above else "Your earlier requests"
            message = f"{whose} have not finished in time."
            raise SERVICE_UNAVAILABLE(message, retry_after=self._retry_after()) from error
        except BaseException:
            self._leave(node, turn)
            raise
        return node

    def release(self, node: OwnerNode) -> None:
        """Give a slot back, to the next whose turn it is."""
        for element in node.upwards():
            element.running -= 1
        top = _top(node)
        while next_node := _next(top):
            _give(next_node)
        self._forget(node)

    def _node_of(self, owner: Owner) -> OwnerNode:
        nodes, above = self._owners, None
        for depth, key in enumerate(owner):
            node = nodes.get(key)
            if node is None:
                max_running = self._max_running if above is None else self._max_per_address
                together = len(owner) > 1 and not depth
                max_waiting = self._max_waiting_together if together else self._max_waiting
                node = nodes[key] = OwnerNode(key, above, max_running, max_waiting)
            nodes, above = node.below, node
        assert above is not None, "an owner has a name"
        return above

    def _make_waiting_place(self, node: OwnerNode) -> None:
        """Make a place where one more piece of work waits at a node. Raises `service_unavailable` if there is none."""
        try:
            yielding_node = self._find_yielding_node(node)
        except Problem:
            self._forget(node)
            raise
        if yielding_node is None:
            return
        while yielding_node.waiting_below:
            yielding_node = _largest_below(yielding_node)
        for turn in reversed(yielding_node.turns):  # what came last gives way
            if not turn.done():
                turn.set_exception(self._too_much(yielding_node))
                _stop_waiting(yielding_node)
                break

    def _find_yielding_node(self, node: OwnerNode) -> OwnerNode | None:
        """The owner who gives way to one more piece of work at a node; None: there is a free place.

        Where too many wait, it is the owner with the most waiting. Raises `service_unavailable` if that is the owner of
        the work itself.
        """
        below: OwnerNode | None = None
        for element in node.upwards():
            if element.waiting >= element.max_waiting:
                if (
                    below is None
                    or not element.waiting_below
                    or (largest := _largest_below(element)).waiting <= below.waiting + 1
                ):
                    raise self._too_much(node)
                return largest  # then the nodes above have a free place too
            below = element
        return None

    def _too_much(self, node: OwnerNode) -> Problem:
        whose = "work" if node.above else "of your own work"
        return SERVICE_UNAVAILABLE(f"Too much {whose} waits already.", retry_after=self._retry_after())

    def _leave(self, node: OwnerNode, turn: WaitingTurn) -> None:
        """Stop waiting: the turn did not come, or came too late to be used."""
        if turn.done() and not turn.cancelled():
            if turn.exception() is None:
                self.release(node)
            else:
                self._forget(node)
            return
        turn.cancel()
        _stop_waiting(node)
        self._forget(node)

    def _forget(self, node: OwnerNode) -> None:
        """Forget nodes that have no work."""
        for element in node.upwards():
            if element.running or element.waiting or element.below:
                return
            (element.above.below if element.above else self._owners).pop(element.key, None)


class Slot:
    """One slot, held while an `async with` block lasts."""

    __slots__ = ("_node", "_owner", "_slots")

    def __init__(self, slots: Slots, owner: Owner) -> None:
        self._slots = slots
        self._owner = owner

    async def __aenter__(self) -> None:
        self._node = await self._slots.take(self._owner)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._slots.release(self._node)


def _begin(node: OwnerNode) -> None:
    for element in node.upwards():
        element.running += 1


def _wait(node: OwnerNode, turn: WaitingTurn) -> None:
    node.turns.append(turn)
    for element in node.upwards():
        element.waiting += 1
        if element.above:
            element.above.waiting_below.setdefault(element.key, element)


def _stop_waiting(node: OwnerNode) -> None:
    for element in node.upwards():
        element.waiting -= 1
        if element.above and not element.waiting:
            del element.above.waiting_below[element.key]
    if not node.waiting:
        node.turns.clear()


def _largest_below(node: OwnerNode) -> OwnerNode:
    return max(node.waiting_below.values(), key=lambda below: below.waiting)


def _top(node: OwnerNode) -> OwnerNode:
    *_, top = node.upwards()
    return top


def _next(node: OwnerNode) -> OwnerNode | None:
    """The node whose turn it is, of those that wait and have a free slot; None if there is none."""
    if not (node.waiting and node.has_free_slot):
        return None
    while node.turns and node.turns[0].done():
        node.turns.popleft()
    if node.turns:
        return node
    for below in node.waiting_below.values():
        if next_node := _next(below):
            return next_node
    return None


def _give(node: OwnerNode) -> None:
    """Give a slot to the one that has waited longest here. Then every node of its path is the last of its siblings."""
    turn = node.turns.popleft()
    for element in node.upwards():
        if element.above:
            element.above.waiting_below.move_to_end(element.key)
    _stop_waiting(node)
    _begin(node)
    turn.set_result(None)
