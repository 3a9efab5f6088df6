"""The page on how the levels at the platform follow the pools, their differences, and their correction."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.accounts.sessions import Session
from holdfast.inventory.catalog.importing import ImportProducts
from holdfast.inventory.console.frame import Console, merchant, shop_of
from holdfast.inventory.console.pools.stock_preview import preview_of
from holdfast.inventory.console.sync.differences import (
    CAUSES,
    HANDLING_BY_POLICY,
    MAX_DIFFERENCES,
    by_pools,
    difference_of,
)
from holdfast.inventory.console.variants.variant_names import names_of
from holdfast.inventory.pools.model import FindSourcePools, GetPool, ListPools, PoolList, PoolWithMembers, SourcePool
from holdfast.inventory.problems import NOT_ENOUGH_STOCK, POOL_NOT_ACTIVE, SHOP_NOT_CONNECTED
from holdfast.inventory.site import SITE
from holdfast.inventory.stock.model import AdjustPoolQuantity, StockChange
from holdfast.inventory.sync.model import (
    DriftReport,
    GetDrift,
    GetSyncStatus,
    Reconcile,
    Reconciliation,
    Resync,
    ResyncedLevels,
    SyncStatus,
)
from holdfast.kit.contract.command import check, with_integers
from holdfast.kit.contract.messages import translatable
from holdfast.kit.contract.problems import BAD_REQUEST, NOT_FOUND, SERVICE_UNAVAILABLE, VALIDATION_FAILED, Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, try_form
from holdfast.kit.pages.language import language_of

SYNC = "/console/sync"

LOCATION_RULE_TEXTS = {
    "all": translatable("Each location of your shop shows the whole stock."),
    "one": translatable("One location of your shop shows the whole stock."),
    "shares": translatable("Each location of your shop shows its share of the stock."),
}
"""The words for each rule by which quantities are spread over locations."""

FORM_PROBLEMS = (SHOP_NOT_CONNECTED, SERVICE_UNAVAILABLE, NOT_ENOUGH_STOCK, POOL_NOT_ACTIVE)
"""Problems that the page explains."""


class SyncPage:
    """Answers requests for the status of the levels."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status, self._drift = console.run["get_sync_status"], console.run["get_drift"]
        self._reconcile, self._resync = console.run["reconcile"], console.run["resync"]
        self._import_products = console.run["import_products"]
        self._pools, self._pool = console.run["list_pools"], console.run["get_pool"]
        self._source_pools, self._keep_number = console.run["find_source_pools"], console.run["keep_platform_number"]

    def routes(self) -> list[Route]:
        return [self._console.route(SYNC, "sync", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show how levels follow, then the preview of a correction, then run it."""
        if request.method != "POST":
            return await self._status_page(session, request)
        fields = await self._console.signed_in.read(session, request)
        action_by_name = {
            "reconcile": self._reconcile_pool,
            "resync": self._resync_pool,
            "keep": self._keep_platform_number,
            "import": self._import,
        }
        action = action_by_name.get(fields.get("do", ""))
        if action is None:
            raise BAD_REQUEST("The form names nothing to do.", hint="Open the page again.")
        outcome = await try_form(lambda: action(session, request, fields), *FORM_PROBLEMS)
        if isinstance(outcome, FormRefusal):
            return await self._status_page(session, request, outcome)
        return outcome

    async def _import(self, session: Session, request: Request, fields: Mapping[str, str]) -> Reply:
        """Start to import the products."""
        await self._import_products(merchant(session), ImportProducts())
        return self._console.redirect(request, SYNC)

    async def _reconcile_pool(self, session: Session, request: Request, fields: Mapping[str, str]) -> Reply:
        """Compare a pool with the platform; after confirmation, have its policy handle the differences."""
        pool_id = chosen_pool_id(fields)
        if "sure" in fields:
            command = Reconcile(pool_id=pool_id, dry_run=False)
            result = await forms.run_once(self._reconcile, merchant(session), command, fields, Reconciliation)
            if not result.waits_for:
                return self._console.redirect(request, SYNC)
        comparison: Reconciliation = await self._reconcile(merchant(session), Reconcile(pool_id=pool_id))
        pool = await self._pool_of(session, pool_id)
        if not comparison.drift:
            return await self._page(session, request, "sync/no_differences.html", pool=pool)
        differences = [difference_of(level) for level in comparison.drift[:MAX_DIFFERENCES]]
        return await self._page(
            session,
            request,
            "sync/differences_question.html",
            gids=[difference.variant_gid for difference in differences],
            pool=pool,
            action="reconcile",
            once=forms.new_token(),
            handling=HANDLING_BY_POLICY[pool.policy],
            differences=differences,
            count=len(comparison.drift),
            waits_for=comparison.waits_for,
        )

    async def _resync_pool(self, session: Session, request: Request, fields: Mapping[str, str]) -> Reply:
        """Show how many levels would be set again; after confirmation, set them."""
        pool_id = chosen_pool_id(fields)
        command = Resync(pool_id=pool_id, dry_run="sure" not in fields)
        if not command.dry_run:
            await forms.run_once(self._resync, merchant(session), command, fields, ResyncedLevels)
            return self._console.redirect(request, SYNC)
        preview: ResyncedLevels = await self._resync(merchant(session), command)
        pool = await self._pool_of(session, pool_id)
        if not preview.levels:
            return await self._page(session, request, "sync/no_differences.html", pool=pool)
        return await self._page(
            session,
            request,
            "sync/resync_question.html",
            pool=pool,
            action="resync",
            once=forms.new_token(),
            count=preview.levels,
        )

    async def _keep_platform_number(self, session: Session, request: Request, fields: Mapping[str, str]) -> Reply:
        """Show what a pool has if the number of the shop is right; after confirmation, correct the pool.

        The numbers of the pool are set again with it, so that the number no longer waits.
        """
        pool_id, caller = chosen_pool_id(fields), merchant(session)
        amount = with_integers(AdjustPoolQuantity, {"delta": fields.get("delta", "")})
        texts = SITE.texts(language_of(request))
        values = {"pool_id": pool_id, "reason": texts.gettext("The number in the shop is right"), **amount}
        command = check(AdjustPoolQuantity, values)
        if "sure" in fields:
            await forms.run_once(self._keep_number, caller, command, fields, StockChange)
            return self._console.redirect(request, SYNC)
        change: StockChange = await self._keep_number(caller, msgspec.structs.replace(command, dry_run=True))
        pool = await self._pool_of(session, pool_id)
        return await self._page(
            session,
            request,
            "sync/keep_question.html",
            pool=pool,
            action="keep",
            once=forms.new_token(),
            preview=preview_of(change, pool),
            delta=command.delta,
        )

    async def _pool_of(self, session: Session, pool_id: int) -> PoolWithMembers:
        return await self._pool(merchant(session), GetPool(pool_id=pool_id))

    async def _status_page(self, session: Session, request: Request, refusal: FormRefusal = NOT_REFUSED) -> Reply:
        caller = merchant(session)
        status: SyncStatus = await self._status(caller, GetSyncStatus())
        report: DriftReport = await self._drift(caller, GetDrift(limit=MAX_DIFFERENCES))
        gids = [level.variant_gid for level in report.drift]
        source_pools: Mapping[str, Sequence[SourcePool]]
        source_pools = await self._source_pools(caller, FindSourcePools(gids=gids))
        pools: PoolList = await self._pools(caller, check(ListPools, {"limit": 200}))
        return await self._page(
            session,
            request,
            "sync/sync.html",
            refusal.status,
            gids=gids,
            sync_status=status,
            groups=by_pools(report.drift, source_pools),
            # A difference without a reason may be too young to be counted in the status.
            different=max(status.unexplained, sum(level.cause == "unexplained" for level in report.drift)),
            pools=pools.pools,
            failed=refusal.code,
            headers=refusal.headers,
            shop=shop_of(session),
            scripts=["live.js"],
        )

    async def _page(
        self,
        session: Session,
        request: Request,
        template: str,
        status_code: int = 200,
        *,
        gids: Sequence[str] = (),
        **values: Any,
    ) -> Reply:
        """A page of the sync. `gids`: the variants that it names."""
        return self._console.page(
            session,
            request,
            template,
            status_code,
            here=SYNC,
            names=await names_of(self._console, session, request, gids),
            causes=CAUSES,
            rules=LOCATION_RULE_TEXTS,
            **values,
        )


def chosen_pool_id(fields: Mapping[str, str]) -> int:
    """The pool of a form. Raises `not_found` if it names nothing that could be one."""
    try:
        return check(GetPool, with_integers(GetPool, {"pool_id": fields.get("pool_id", "")})).pool_id
    except Problem as problem:
        if problem.type is VALIDATION_FAILED:
            raise NOT_FOUND() from problem
        raise
