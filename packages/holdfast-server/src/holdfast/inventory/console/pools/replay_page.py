"""The page that shows what the shop's past orders would have done with the suggested pools. It changes nothing."""

from collections.abc import Mapping, Sequence
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

MAX_JARS = 60
"""The most jars in the picture of a pool. Each stands for the same number of units."""

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
    """The packs of a pool, and its jars.

    units            how many units became what, by the kinds `sold`, `more`, `left` and `missing`
    units_per_jar    for how many of them a jar stands
    jars             the place and the kind of each
    """

    packs: Sequence[PicturedPack]
    units: Mapping[str, int]
    units_per_jar: int
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
        results = sorted(replay.result.pools, key=lambda pool: not pool.is_better) if replay.result else []
        pools = [(pool, picture_of(pool)) for pool in results]
        return self._console.page(
            session,
            request,
            "pools/replay.html",
            refusal.status,
            replay=replay,
            result=replay.result,
            pools=pools,
            kinds={kind for pool, picture in pools if pool.is_better for _, _, kind in picture.jars},
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
    units = _units_by_kind(pool)
    units_per_jar = max(1, -(-sum(units.values()) // MAX_JARS))
    places = ((22 + 14 * (jar % 20), 134 + 18 * (jar // 20)) for jar in range(MAX_JARS))
    jars = [(x, y, kind) for (x, y), kind in zip(places, _jars(units, units_per_jar), strict=False)]
    return PoolPicture(packs, units, units_per_jar, jars)


def _units_by_kind(pool: PoolResult) -> Mapping[str, int]:
    """What became of the units. If more were sold than there were, none are left."""
    units_left = 0 if pool.missing_units else pool.ends_with
    sold = pool.began_with - pool.more_units - units_left
    return {"sold": sold, "more": pool.more_units, "left": units_left, "missing": pool.missing_units}


def _jars(units: Mapping[str, int], units_per_jar: int) -> Sequence[str]:
    """The kind of each jar."""
    total = sum(units.values())
    count = -(-total // units_per_jar)
    kinds: list[str] = []
    upto = 0
    for kind, number in units.items():
        upto += number
        # Every kind with at least one unit has a jar.
        share = count * upto // total if total else 0
        kinds += [kind] * max(share - len(kinds), 1 if number and len(kinds) < count else 0)
    return kinds[:count]
