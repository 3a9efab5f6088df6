"""The shop's holds: what is kept for whom, and until when. Each can be released."""

import asyncio
from collections.abc import Mapping, Sequence

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import Console, merchant
from holdfast.inventory.pools.model import GetPool, PoolWithMembers
from holdfast.inventory.problems import HOLD_ENDED
from holdfast.inventory.stock.model import ActiveHold, HoldList, ListHolds, ReleaseHold, StockChange
from holdfast.kit.command import check, numbered
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.pages import once
from holdfast.kit.pages.refusal import Refusal, tried
from holdfast.kit.problems import NOT_FOUND, VALIDATION_FAILED, Problem

HOLDS = "/console/holds"
SHOWN = 20


class HoldsPage:
    """Answers requests for the list of holds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._list, self._release = console.run["list_holds"], console.run["release_hold"]
        self._pool = console.run["get_pool"]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(HOLDS, "holds", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """List the holds, the newest first; release one."""
        if request.method != "POST":
            return await self._listed(session, request, read_query(request.query))
        fields = await self._console.door.read(session, request)
        command = released(fields)
        done = await tried(lambda: once.run(self._release, merchant(session), command, fields, StockChange), HOLD_ENDED)
        if isinstance(done, Refusal):
            return await self._listed(session, request, {}, ended=True)
        return self._console.to(request, HOLDS)

    async def _listed(
        self, session: Session, request: Request, asked: Mapping[str, str], *, ended: bool = False
    ) -> Reply:
        command = check(ListHolds, {"limit": SHOWN, **({"cursor": asked["cursor"]} if "cursor" in asked else {})})
        found: HoldList = await self._list(merchant(session), command)
        return self._console.page(
            session,
            request,
            "holds.html",
            409 if ended else 200,
            here=HOLDS,
            holds=found.holds,
            pools=await self._pools(session, found.holds),
            after=found.next_cursor,
            ended=ended,
            once=once.new(),
        )

    async def _pools(self, session: Session, holds: Sequence[ActiveHold]) -> Mapping[int, PoolWithMembers]:
        """The pools of which holds keep something, by id. They are read together."""
        ids = sorted({each.pool_id for hold in holds for each in hold.pools})
        commands = [GetPool(pool_id=id, include_members=False) for id in ids]
        found = await asyncio.gather(*(self._pool(merchant(session), command) for command in commands))
        return dict(zip(ids, found, strict=True))


def released(fields: Mapping[str, str]) -> ReleaseHold:
    """The command of a form. Raises `not_found` if it names nothing that could be a hold."""
    try:
        return check(ReleaseHold, numbered(ReleaseHold, {"hold_id": fields.get("hold_id", "")}))
    except Problem as problem:
        if problem.type is VALIDATION_FAILED:
            raise NOT_FOUND() from problem
        raise
