"""The page that shows what the shop's past orders would have done with the suggested pools. It changes nothing."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.accounts.sessions import Session
from holdfast.inventory.catalog.pool_suggestions import PoolSuggestions, SuggestPools
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.replays.model import (
    MAX_ORDERS,
    REPLAY_DAYS,
    BeginReplay,
    GetReplay,
    PackResult,
    PoolResult,
    Replay,
)
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import NOT_FOUND
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, try_form

REPLAY = f"{HOME}/replay"

MAX_NAMED_ORDERS = 50
"""The most orders of a pool that the page names."""

FEW_ORDERS = 10
"""Fewer orders than these say little."""

JARS = 60
"""The jars in the picture of a pool. Each stands for the same share of its units."""

MAX_PICTURED_PACKS = 4
MAX_PICTURED_UNITS = 12


class PicturedPack(NamedTuple):
    """A pack in the picture: `x` is its left edge, and each jar has a place."""

    pack: PackResult
    x: int
    width: int
    height: int
    jars: Sequence[tuple[int, int]]


class PoolPicture(NamedTuple):
    """The packs of a pool, and its jars: the kind of each is `sold`, `more`, `left` or `missing`."""

    packs: Sequence[PicturedPack]
    jars: Sequence[tuple[int, int, str]]


class ReplayPage:
    """Answers requests for the replay of past orders."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begin, self._get = console.run["begin_replay"], console.run["get_replay"]
        self._suggest = console.run["suggest_pools"]

    def routes(self) -> list[Route]:
        return [self._console.route(REPLAY, "replay", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the last replay, or begin one."""
        refusal = NOT_REFUSED
        if request.method == "POST":
            fields = await self._console.signed_in.read(session, request)
            command = check(BeginReplay, {"cursor": fields.get("cursor", "")})
            begun = await try_form(lambda: self._begin(merchant(session), command), SHOP_NOT_CONNECTED, NOT_FOUND)
            if not isinstance(begun, FormRefusal):
                return self._console.redirect(request, REPLAY)
            refusal = begun
        replay: Replay = await self._get(merchant(session), GetReplay())
        pools = sorted(replay.result.pools, key=lambda pool: not pool.is_better) if replay.result else []
        return self._console.page(
            session,
            request,
            "pools/replay.html",
            refusal.status,
            replay=replay,
            result=replay.result,
            pools=[(pool, picture_of(pool)) for pool in pools],
            are_made=bool(pools) and not await self._has_suggestions(session),
            failed=refusal.code,
            days=REPLAY_DAYS,
            most_orders=MAX_ORDERS,
            few_orders=FEW_ORDERS,
            most_named=MAX_NAMED_ORDERS,
            scripts=["live.js"],
        )

    async def _has_suggestions(self, session: Session) -> bool:
        """Whether pools are suggested still, on the first page or on one after it."""
        suggested: PoolSuggestions = await self._suggest(merchant(session), SuggestPools())
        return bool(suggested.suggestions or suggested.next_cursor)


def picture_of(pool: PoolResult) -> PoolPicture:
    """The picture of a pool and what became of it."""
    packs: list[PicturedPack] = []
    pictured = pool.packs[:MAX_PICTURED_PACKS]
    for index, pack in enumerate(pictured):
        count = min(pack.units_per_sale, MAX_PICTURED_UNITS)
        columns = min(count, 4)
        rows = -(-count // columns)
        width, height = 14 * columns + 10, 18 * rows + 8
        x = (2 * index + 1) * 320 // (2 * len(pictured)) - width // 2
        jars = [(x + 6 + 14 * (jar % columns), 72 - height + 5 + 18 * (jar // columns)) for jar in range(count)]
        packs.append(PicturedPack(pack, x, width, height, jars))
    return PoolPicture(packs, [(22 + 14 * (jar % 20), 134 + 18 * (jar // 20), kind) for jar, kind in _jars(pool)])


def _jars(pool: PoolResult) -> Sequence[tuple[int, str]]:
    """The kind of each jar."""
    missing = pool.missing_units
    total = pool.began_with + missing
    sold = pool.began_with - pool.more_units - pool.ends_with
    kinds: list[str] = []
    upto = 0
    for kind, units in (("sold", sold), ("more", pool.more_units), ("left", pool.ends_with), ("missing", missing)):
        upto += units
        # What there is any of, has a jar.
        share = JARS * upto // total if total else 0
        kinds += [kind] * max(share - len(kinds), 1 if units and len(kinds) < JARS else 0)
    return [*enumerate(kinds[:JARS])]
