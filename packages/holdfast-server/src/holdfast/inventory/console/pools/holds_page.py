"""The page of the shop's holds: their quantities, and until when. Each can be released."""

import asyncio
from collections.abc import Mapping, Sequence

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import Console, merchant
from holdfast.inventory.pools.model import GetPool, PoolWithMembers
from holdfast.inventory.problems import HOLD_ENDED
from holdfast.inventory.stock.model import ActiveHold, HoldList, ListHolds, ReleaseHold, StockChange
from holdfast.kit.contract.command import check, with_integers
from holdfast.kit.contract.problems import NOT_FOUND, VALIDATION_FAILED, Problem
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import FormRefusal, try_form

HOLDS = "/console/holds"
PAGE_SIZE = 20


class HoldsPage:
    """Answers requests for the list of holds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._list, self._release = console.run["list_holds"], console.run["release_hold"]
        self._pool = console.run["get_pool"]

    def routes(self) -> list[Route]:
        return [self._console.route(HOLDS, "holds", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """List the holds, the newest first; release one."""
        if request.method != "POST":
            return await self._list_page(session, request, read_query(request.query))
        fields = await self._console.signed_in.read(session, request)
        command = release_command(fields)
        outcome = await try_form(
            lambda: forms.run_once(self._release, merchant(session), command, fields, StockChange),
            HOLD_ENDED,
        )
        if isinstance(outcome, FormRefusal):
            return await self._list_page(session, request, {}, hold_has_ended=True)
        return self._console.redirect(request, HOLDS)

    async def _list_page(
        self, session: Session, request: Request, query: Mapping[str, str], *, hold_has_ended: bool = False
    ) -> Reply:
        command = check(ListHolds, {"limit": PAGE_SIZE, **({"cursor": query["cursor"]} if "cursor" in query else {})})
        hold_list: HoldList = await self._list(merchant(session), command)
        return self._console.page(
            session,
            request,
            "pools/holds.html",
            409 if hold_has_ended else 200,
            here=HOLDS,
            holds=hold_list.holds,
            pools=await self._pools(session, hold_list.holds),
            after=hold_list.next_cursor,
            hold_has_ended=hold_has_ended,
            scripts=["live.js"],
            once=forms.new_token(),
        )

    async def _pools(self, session: Session, holds: Sequence[ActiveHold]) -> Mapping[int, PoolWithMembers]:
        """The pools of holds, by id. They are read together."""
        ids = sorted({line.pool_id for hold in holds for line in hold.pools})
        commands = [GetPool(pool_id=id, include_members=False) for id in ids]
        pools = await asyncio.gather(*(self._pool(merchant(session), command) for command in commands))
        return dict(zip(ids, pools, strict=True))


def release_command(fields: Mapping[str, str]) -> ReleaseHold:
    """The command of a form. Raises `not_found` if it names nothing that could be a hold."""
    try:
        return check(ReleaseHold, with_integers(ReleaseHold, {"hold_id": fields.get("hold_id", "")}))
    except Problem as problem:
        if problem.type is VALIDATION_FAILED:
            raise NOT_FOUND() from problem
        raise
