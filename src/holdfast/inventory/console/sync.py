"""How the levels at the platform follow the pools; what is different, and setting it right."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import Console, merchant, shop_of
from holdfast.inventory.console.naming import names_of
from holdfast.inventory.pools.model import GetPool, ListPools, PoolList, PoolWithMembers
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.sync.answers import (
    Drift,
    DriftReport,
    GetDrift,
    GetSyncStatus,
    Reconcile,
    Reconciled,
    Resync,
    Resynced,
    SyncStatus,
)
from holdfast.kit.command import check, numbered
from holdfast.kit.handler import Reply, Request
from holdfast.kit.pages import once
from holdfast.kit.pages.refusal import NOT_REFUSED, Refusal, tried
from holdfast.kit.problems import BAD_REQUEST, NOT_FOUND, SERVICE_UNAVAILABLE, VALIDATION_FAILED, Problem
from holdfast.kit.said import marked

SYNC = "/console/sync"

SHOWN = 20
"""How many differences are shown."""

CAUSES = {
    "pending": marked("is about to be set"),
    "unexplained": marked("somebody changed it at the platform, or a sale was not told yet"),
    "parked": marked("is not set until you ask for it"),
}
POLICIES = {
    "adopt": marked("The pool takes over what was changed at the platform."),
    "enforce": marked("The platform is set back to what the pool has."),
    "flag": marked("Nothing is changed; the differences stay, and are shown."),
}
RULES = {
    "all": marked("Each location gets all that can be sold."),
    "one": marked("One location gets all that can be sold."),
    "shares": marked("Each location gets its share."),
}


class SyncPage:
    """Answers requests for the state of the levels."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status, self._drift = console.run["get_sync_status"], console.run["get_drift"]
        self._reconcile, self._resync = console.run["reconcile"], console.run["resync"]
        self._pools, self._pool = console.run["list_pools"], console.run["get_pool"]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(SYNC, "sync", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show how levels follow; show what setting them right would do; do it."""
        if request.method != "POST":
            return await self._shown(session, request)
        fields = await self._console.door.read(session, request)
        pool_id = chosen(fields)
        does = {"reconcile": self._compared, "resync": self._set_again}.get(fields.get("do", ""))
        if does is None:
            raise BAD_REQUEST("The form names nothing to do.", hint="Open the page again.")
        done = await tried(lambda: does(session, request, pool_id, fields), SHOP_NOT_CONNECTED, SERVICE_UNAVAILABLE)
        if isinstance(done, Refusal):
            return await self._shown(session, request, done)
        return done

    async def _compared(self, session: Session, request: Request, pool_id: int, fields: Mapping[str, str]) -> Reply:
        """Compare a pool with the platform; then have its policy handle what is different."""
        if "sure" in fields:
            command = Reconcile(pool_id=pool_id, dry_run=False)
            await once.run(self._reconcile, merchant(session), command, fields, Reconciled)
            return self._console.to(request, SYNC)
        found: Reconciled = await self._reconcile(merchant(session), Reconcile(pool_id=pool_id))
        drift = found.drift[:SHOWN]
        return await self._sure(session, request, pool_id, "reconcile", drift=drift, count=len(found.drift))

    async def _set_again(self, session: Session, request: Request, pool_id: int, fields: Mapping[str, str]) -> Reply:
        """Say how many levels would be set again; then do it."""
        command = Resync(pool_id=pool_id, dry_run="sure" not in fields)
        if not command.dry_run:
            await once.run(self._resync, merchant(session), command, fields, Resynced)
            return self._console.to(request, SYNC)
        found: Resynced = await self._resync(merchant(session), command)
        return await self._sure(session, request, pool_id, "resync", drift=[], count=found.levels)

    async def _sure(
        self, session: Session, request: Request, pool_id: int, does: str, *, drift: Sequence[Drift], count: int
    ) -> Reply:
        command = GetPool(pool_id=pool_id, include_members=False)
        pool: PoolWithMembers = await self._pool(merchant(session), command)
        return await self._page(
            session, request, "sync_sure.html", 200, drift, pool=pool, does=does, count=count, once=once.new()
        )

    async def _shown(self, session: Session, request: Request, refusal: Refusal = NOT_REFUSED) -> Reply:
        caller = merchant(session)
        state: SyncStatus = await self._status(caller, GetSyncStatus())
        report: DriftReport = await self._drift(caller, GetDrift(limit=SHOWN))
        pools: PoolList = await self._pools(caller, check(ListPools, {"limit": 200}))
        return await self._page(
            session,
            request,
            "sync.html",
            refusal.status,
            report.drift,
            state=state,
            pools=pools.pools,
            failed=refusal.code,
            headers=refusal.headers,
            shop=shop_of(session),
        )

    async def _page(
        self, session: Session, request: Request, template: str, status_code: int, drift: Sequence[Drift], **values: Any
    ) -> Reply:
        more = {"causes": CAUSES, "policies": POLICIES, "rules": RULES, **values}
        names = await names_of(self._console, session, request, [each.variant_gid for each in drift])
        return self._console.page(session, request, template, status_code, here=SYNC, drift=drift, names=names, **more)


def chosen(fields: Mapping[str, str]) -> int:
    """The pool that a form names. Raises `not_found` if it names nothing that could be one."""
    try:
        return check(GetPool, numbered(GetPool, {"pool_id": fields.get("pool_id", "")})).pool_id
    except Problem as problem:
        if problem.type is VALIDATION_FAILED:
            raise NOT_FOUND() from problem
        raise
