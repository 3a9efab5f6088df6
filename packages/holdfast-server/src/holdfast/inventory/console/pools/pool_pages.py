"""The page of one pool: its stock, what can be sold of it, its history, and how an entry is undone."""

import asyncio
from collections.abc import Mapping, Sequence

from msgspec import Struct

from holdfast.accounts.sessions import Session
from holdfast.inventory.availability.model import Availability, GetAvailability
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.console.pools.history_rows import ACTORS, HistoryRows
from holdfast.inventory.console.pools.pool_paths import POOL, PoolPath, pool_of
from holdfast.inventory.console.pools.stock_preview import preview_of
from holdfast.inventory.console.variants.variant_names import names_of
from holdfast.inventory.installs.operations import GetConnection
from holdfast.inventory.pools.model import ListPools, PoolWithMembers
from holdfast.inventory.pools.pool_figures import GetPoolFigures, PoolFigures
from holdfast.inventory.problems import ALREADY_REVERTED, HOLD_ENDED, NOT_ENOUGH_STOCK, NOT_REVERTIBLE, POOL_NOT_ACTIVE
from holdfast.inventory.shopify.platform_client import Platform
from holdfast.inventory.site import SITE
from holdfast.inventory.stock.model import (
    Entry,
    EntryKind,
    GetStockHistory,
    ReleaseHold,
    RevertEntry,
    StockChange,
)
from holdfast.inventory.stock.pool_history import (
    GetEntry,
    GetPoolHistory,
    PoolHistory,
)
from holdfast.inventory.sync.model import Drift, DriftReport, GetDrift
from holdfast.kit.contract.command import Id, check
from holdfast.kit.contract.messages import translatable
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.pages import forms
from holdfast.kit.pages.chart import draw_steps
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, command_in_path, try_form
from holdfast.kit.pages.language import language_of

MAX_NEWEST_ENTRIES = 10
"""The most entries of the history on the page of a pool; the rest are on pages of their own."""

PAGE_SIZE = 50

MAX_COMPARED_LEVELS = 200
"""The most levels of a pool that the page compares with the shop."""

MAX_DIFFERENCES = 3
"""The most numbers of the shop that the page shows beside those of the pool; the page of the sync has the rest."""

SOURCES = {
    "webhook": translatable("Orders"),
    "record_sale": translatable("Recorded sales"),
    "adjust_pool_quantity": translatable("Corrections"),
    "bulk_adjust": translatable("Corrections of many pools"),
    "set_pool_quantity": translatable("Counts"),
    "transfer_quantity": translatable("Transfers to other pools"),
    "import_csv": translatable("Spreadsheets"),
    "revert_entry": translatable("Changes that were undone"),
    "inventory_levels/update": translatable("Changes in your shop"),
}
"""The words for the sources of what was taken; any other source is shown by its name."""

CHART_KINDS = {
    "sale": ("circle", translatable("Sales")),
    "count": ("square", translatable("Counts")),
    "correction": ("triangle", translatable("Other changes")),
}
"""The marks of changes in the chart, with their names."""

KIND_IN_CHART: Mapping[EntryKind | None, str] = {
    "sale": "sale",
    "cancel": "sale",
    "set": "count",
    "import": "count",
    **dict.fromkeys(("adjust", "restock", "transfer", "external_edit", "reconcile", "revert"), "correction"),
}
"""The kind of mark for each kind of entry that changes what is on hand."""


HISTORY_FILTERS = {
    "": translatable("Everything"),
    "sales": translatable("Sales"),
    "counts": translatable("Counts"),
    "corrections": translatable("Corrections"),
    "transfers": translatable("Transfers"),
    "holds": translatable("Holds"),
    "platform": translatable("Changes in your shop"),
}
"""The filters of the history with their names, by the value of the parameter `kind`."""

KINDS_OF_FILTER: Mapping[str, Sequence[EntryKind]] = {
    "sales": ("sale", "cancel"),
    "counts": ("set", "import"),
    "corrections": ("adjust", "restock", "revert"),
    "transfers": ("transfer",),
    "holds": ("hold", "release"),
    "platform": ("external_edit", "reconcile"),
}
"""The kinds of entries that each filter shows."""

UNDO_PROBLEMS = (ALREADY_REVERTED, HOLD_ENDED, NOT_ENOUGH_STOCK, NOT_REVERTIBLE, POOL_NOT_ACTIVE)
"""Problems that the page of an undo explains."""


class PoolPage:
    """Answers requests for the page of a pool, and for its history."""

    def __init__(self, console: Console, platform: Platform) -> None:
        self._console = console
        self._get_history, self._get_availability = console.run["get_pool_history"], console.run["get_availability"]
        self._rows = HistoryRows(console, platform)
        self._list, self._figures = console.run["list_pools"], console.run["get_pool_figures"]
        self._drift = console.run["get_drift"]

    def routes(self) -> list[Route]:
        return [
            *SITE.assets("live.js", "chart.js"),
            self._console.route(POOL, "pool", self.show),
            self._console.route(f"{POOL}/history", "pool_history", self.history),
        ]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show a pool."""
        # Read at the same time: under overload each look-up takes turns of the event loop.
        history: PoolHistory
        history, pool = await asyncio.gather(
            self._get_history(merchant(session), GetPoolHistory(pool_id=command_in_path(PoolPath, request).pool_id)),
            pool_of(self._console, session, request),
        )
        kind = filter_of(request)
        (lines, older), names, limiting, pools, figures = await asyncio.gather(
            self._rows.read(session, request, history_command(pool, kind, limit=MAX_NEWEST_ENTRIES)),
            names_of(self._console, session, request, gids_of(pool, history)),
            self._limiting(session, pool),
            self._list(merchant(session), ListPools(limit=2)),
            self._figures(merchant(session), GetPoolFigures(pool_ids=[pool.id])),
        )
        figure: PoolFigures = figures[pool.id]
        texts = SITE.texts(language_of(request))
        return self._console.page(
            session,
            request,
            "pools/pool.html",
            pool=pool,
            figure=figure,
            differences=await self._differences(session, pool) if figure.sync == "different" else [],
            max_differences=MAX_DIFFERENCES,
            since=history.moments[0].at,
            drawn=draw_steps(
                [(moment.at, moment.on_hand) for moment in history.moments],
                history.moments[-1].at,
                [KIND_IN_CHART.get(moment.kind, "") for moment in history.moments],
            ),
            kinds={kind: (shape, texts.gettext(name)) for kind, (shape, name) in CHART_KINDS.items()},
            by_variant=history.by_variant,
            by_source=history.by_source,
            names=names,
            sources=SOURCES,
            limiting=limiting,
            has_other_pools=len(pools.pools) > 1,
            lines=lines,
            older=older,
            actors=ACTORS,
            kind=kind,
            filters=HISTORY_FILTERS,
            scripts=["live.js", "chart.js"],
        )

    async def history(self, session: Session, request: Request) -> Reply:
        """Show the history of a pool, the newest entries first."""
        pool = await pool_of(self._console, session, request)
        kind = filter_of(request)
        command = history_command(pool, kind, PAGE_SIZE, read_query(request.query).get("cursor") or None)
        lines, older = await self._rows.read(session, request, command)
        return self._console.page(
            session,
            request,
            "pools/pool_history.html",
            pool=pool,
            lines=lines,
            older=older,
            actors=ACTORS,
            kind=kind,
            filters=HISTORY_FILTERS,
            scripts=["live.js"],
        )

    async def _differences(self, session: Session, pool: PoolWithMembers) -> list[Drift]:
        """The numbers of a pool that are others in the shop. A parked level may have the same number."""
        command = GetDrift(pool_id=pool.id, limit=MAX_COMPARED_LEVELS)
        report: DriftReport = await self._drift(merchant(session), command)
        return [drift for drift in report.drift if drift.difference]

    async def _limiting(self, session: Session, pool: PoolWithMembers) -> Mapping[str, int]:
        """The limiting pool of each variant; a kit may be limited by another pool than this one."""
        if pool.status == "archived":
            return {}
        availability: Availability = await self._get_availability(merchant(session), GetAvailability(pool_id=pool.id))
        return availability.limiting_pool


def filter_of(request: Request) -> str:
    """The filter of the history that the address names; empty if it names none."""
    kind = read_query(request.query).get("kind", "")
    return kind if kind in HISTORY_FILTERS else ""


def history_command(
    pool: PoolWithMembers, history_filter: str, limit: int, cursor: str | None = None
) -> GetStockHistory:
    """The command for a page of the history. Raises `validation_failed` for a malformed cursor."""
    kinds = KINDS_OF_FILTER.get(history_filter)
    return check(GetStockHistory, {"pool_id": pool.id, "kinds": kinds, "limit": limit, "cursor": cursor})


def gids_of(pool: PoolWithMembers, history: PoolHistory) -> set[str]:
    """The variants that the page of a pool names: those that draw on it, and those that did."""
    return {member.variant_gid for member in pool.members} | {
        member.name for member in history.by_variant if member.name
    }


class EntryOfPool(PoolPath):
    entry_id: Id


class UndoEffect(Struct):
    """The effect of undoing on one pool.

    is_hold    whether it changes what is held, not what is on hand
    is_low     whether the pool is then at or below its `low_stock_at`, or has nothing left
    """

    name: str
    unit: str
    delta: int
    after: int
    is_hold: bool
    is_low: bool


class UndoPage:
    """Answers requests for the page that undoes an entry."""

    def __init__(self, console: Console, platform: Platform) -> None:
        self._console = console
        self._rows = HistoryRows(console, platform)
        self._entry, self._revert = console.run["get_entry"], console.run["revert_entry"]
        self._release, self._is_connected = console.run["release_hold"], console.run["is_shop_connected"]

    def routes(self) -> list[Route]:
        return [self._console.route(f"{POOL}/entries/{{entry_id}}/undo", "undo", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the effect of undoing an entry, or undo it."""
        entry_id = command_in_path(EntryOfPool, request).entry_id
        fields = await self._console.signed_in.read(session, request) if request.method == "POST" else {}
        pool = await pool_of(self._console, session, request, EntryOfPool)
        entry: Entry | None = await self._entry(merchant(session), GetEntry(pool_id=pool.id, entry_id=entry_id))
        refusal = NOT_REFUSED
        if request.method == "POST":
            outcome = await try_form(lambda: self._undo(session, entry_id, entry, fields), *UNDO_PROBLEMS)
            if not isinstance(outcome, FormRefusal):
                return self._console.redirect(request, f"{HOME}/pools/{pool.id}")
            refusal = outcome
        trial = await try_form(lambda: self._undo(session, entry_id, entry), *UNDO_PROBLEMS)
        if isinstance(trial, FormRefusal):
            return self._console.page(
                session, request, "pools/not_undone.html", refusal.status, pool=pool, code=trial.code
            )
        return self._console.page(
            session,
            request,
            "pools/undo.html",
            refusal.status,
            pool=pool,
            entry_id=entry_id,
            row=(await self._rows.rows_of(session, request, [entry]))[0] if entry else None,
            actors=ACTORS,
            effects=_effects(trial),
            preview=preview_of(trial, pool),
            is_connected=await self._is_connected(merchant(session), GetConnection()),
            values=fields,
            errors=refusal.errors,
            once=forms.new_token(),
        )

    async def _undo(
        self, session: Session, entry_id: int, entry: Entry | None, fields: Mapping[str, str] | None = None
    ) -> StockChange:
        """Undo an entry: a hold by its release, any other by its opposite. `fields`: of the form; None: only try it."""
        is_hold = entry is not None and entry.kind == "hold" and entry.hold_id is not None
        target = {"hold_id": entry.hold_id} if entry and is_hold else {"entry_id": entry_id}
        reason = fields and fields.get("reason")
        command = check(
            ReleaseHold if is_hold else RevertEntry,
            {**target, "reason": reason or None, "dry_run": fields is None},
        )
        run = self._release if is_hold else self._revert
        if fields is None:
            return await run(merchant(session), command)
        return await forms.run_once(run, merchant(session), command, fields, StockChange)


def _effects(change: StockChange) -> list[UndoEffect]:
    pools = {pool.id: pool for pool in change.pools}

    def effect(entry: Entry) -> UndoEffect:
        pool = pools[entry.pool_id]
        if entry.kind == "release":
            return UndoEffect(pool.name, pool.unit, entry.held_delta, entry.held_after, is_hold=True, is_low=False)
        is_low = pool.low_stock or entry.balance_after <= 0
        return UndoEffect(pool.name, pool.unit, entry.delta, entry.balance_after, is_hold=False, is_low=is_low)

    return [*map(effect, change.entries)]
