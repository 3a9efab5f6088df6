"""The page on how the levels at the platform follow the pools, their differences, and their correction."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.accounts.sessions import Session
from holdfast.inventory.catalog.importing import ImportProducts
from holdfast.inventory.console.frame import Console, merchant, shop_of
from holdfast.inventory.console.variants.variants_pages import names_of
from holdfast.inventory.pools.model import GetPool, ListPools, PoolList, PoolWithMembers
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.sync.model import (
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
from holdfast.kit.contract.command import check, with_integers
from holdfast.kit.contract.messages import translatable
from holdfast.kit.contract.problems import BAD_REQUEST, NOT_FOUND, SERVICE_UNAVAILABLE, VALIDATION_FAILED, Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, try_form

SYNC = "/console/sync"

MAX_DIFFERENCES = 20
"""The most differences on the page."""

CAUSES = {
    "pending": translatable("is about to be set"),
    "unexplained": translatable("somebody changed it in your shop, or a sale was not reported yet"),
    "parked": translatable("waiting for your OK"),
}
POLICIES = {
    "adopt": translatable("The pool takes over the numbers of your shop."),
    "enforce": translatable("Your shop gets the numbers of the pool again."),
    "flag": translatable("Nothing is changed; the differences stay, and are shown."),
}
RULES = {
    "all": translatable("Each location gets all that can be sold."),
    "one": translatable("One location gets all that can be sold."),
    "shares": translatable("Each location gets its share."),
}


class SyncPage:
    """Answers requests for the status of the levels."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status, self._drift = console.run["get_sync_status"], console.run["get_drift"]
        self._reconcile, self._resync = console.run["reconcile"], console.run["resync"]
        self._import_products = console.run["import_products"]
        self._pools, self._pool = console.run["list_pools"], console.run["get_pool"]

    def routes(self) -> list[Route]:
        return [self._console.route(SYNC, "sync", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show how levels follow, then the preview of a correction, then run it."""
        if request.method != "POST":
            return await self._status_page(session, request)
        fields = await self._console.signed_in.read(session, request)
        does = {"reconcile": self._compare, "resync": self._set_again, "import": self._import}.get(fields.get("do", ""))
        if does is None:
            raise BAD_REQUEST("The form names nothing to do.", hint="Open the page again.")
        done = await try_form(lambda: does(session, request, fields), SHOP_NOT_CONNECTED, SERVICE_UNAVAILABLE)
        if isinstance(done, FormRefusal):
            return await self._status_page(session, request, done)
        return done

    async def _import(self, session: Session, request: Request, fields: Mapping[str, str]) -> Reply:
        """Start to import the products."""
        await self._import_products(merchant(session), ImportProducts())
        return self._console.to(request, SYNC)

    async def _compare(self, session: Session, request: Request, fields: Mapping[str, str]) -> Reply:
        """Compare a pool with the platform; after confirmation, have its policy handle the differences."""
        pool_id = chosen_pool_id(fields)
        if "sure" in fields:
            command = Reconcile(pool_id=pool_id, dry_run=False)
            done = await forms.run_once(self._reconcile, merchant(session), command, fields, Reconciled)
            if not done.waits_for:
                return self._console.to(request, SYNC)
        comparison: Reconciled = await self._reconcile(merchant(session), Reconcile(pool_id=pool_id))
        return await self._confirm(
            session,
            request,
            pool_id,
            "reconcile",
            drift=comparison.drift[:MAX_DIFFERENCES],
            count=len(comparison.drift),
            waits_for=comparison.waits_for,
        )

    async def _set_again(self, session: Session, request: Request, fields: Mapping[str, str]) -> Reply:
        """Show how many levels would be set again; after confirmation, set them."""
        pool_id = chosen_pool_id(fields)
        command = Resync(pool_id=pool_id, dry_run="sure" not in fields)
        if not command.dry_run:
            await forms.run_once(self._resync, merchant(session), command, fields, Resynced)
            return self._console.to(request, SYNC)
        preview: Resynced = await self._resync(merchant(session), command)
        return await self._confirm(session, request, pool_id, "resync", drift=[], count=preview.levels)

    async def _confirm(
        self, session: Session, request: Request, pool_id: int, does: str, *, drift: Sequence[Drift], **values: Any
    ) -> Reply:
        command = GetPool(pool_id=pool_id, include_members=False)
        pool: PoolWithMembers = await self._pool(merchant(session), command)
        return await self._page(
            session,
            request,
            "sync/sync_sure.html",
            200,
            drift,
            pool=pool,
            does=does,
            once=forms.new_token(),
            **values,
        )

    async def _status_page(self, session: Session, request: Request, refusal: FormRefusal = NOT_REFUSED) -> Reply:
        caller = merchant(session)
        status: SyncStatus = await self._status(caller, GetSyncStatus())
        report: DriftReport = await self._drift(caller, GetDrift(limit=MAX_DIFFERENCES))
        pools: PoolList = await self._pools(caller, check(ListPools, {"limit": 200}))
        return await self._page(
            session,
            request,
            "sync/sync.html",
            refusal.status,
            report.drift,
            sync_status=status,
            pools=pools.pools,
            failed=refusal.code,
            headers=refusal.headers,
            shop=shop_of(session),
            scripts=["live.js"],
        )

    async def _page(
        self, session: Session, request: Request, template: str, status_code: int, drift: Sequence[Drift], **values: Any
    ) -> Reply:
        more = {"causes": CAUSES, "policies": POLICIES, "rules": RULES, **values}
        names = await names_of(self._console, session, request, [difference.variant_gid for difference in drift])
        return self._console.page(session, request, template, status_code, here=SYNC, drift=drift, names=names, **more)


def chosen_pool_id(fields: Mapping[str, str]) -> int:
    """The pool of a form. Raises `not_found` if it names nothing that could be one."""
    try:
        return check(GetPool, with_integers(GetPool, {"pool_id": fields.get("pool_id", "")})).pool_id
    except Problem as problem:
        if problem.type is VALIDATION_FAILED:
            raise NOT_FOUND() from problem
        raise
