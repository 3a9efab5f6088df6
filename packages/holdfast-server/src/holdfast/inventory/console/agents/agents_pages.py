"""The page "Agents" of merchants: the key of the shop, which agents used it, and what they did to the stock."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from holdfast.accounts.agents.agents_page import (
    AGENTS,
    AgentCard,
    AgentLine,
    AgentLines,
    AgentsPage,
    AgentTemplates,
    ConnectionDetails,
    RequestCard,
    connection_page_route,
)
from holdfast.accounts.agents.approvals import RequestApprovals
from holdfast.accounts.agents.limits import AgentLimit, ListLimits
from holdfast.accounts.agents.requests_page import MAX_REQUESTS, RequestsPage
from holdfast.accounts.sessions import Session
from holdfast.inventory.agents.access import KEY_PREFIX_CHARACTERS, EndKey, Key, RenewKey, ShowAccess
from holdfast.inventory.agents.actions import AgentAction, ListAgentActions
from holdfast.inventory.console.agents.approval_cards import describe
from holdfast.inventory.console.frame import Console, merchant
from holdfast.inventory.console.pools.history_rows import ACTORS, HistoryRow, HistoryRows
from holdfast.inventory.cursor import cursor_after
from holdfast.inventory.pools.model import GetPool, PoolWithMembers
from holdfast.inventory.shopify.platform_client import Platform
from holdfast.inventory.shops.model import SCOPES
from holdfast.inventory.shops.operations import SHOP_LIMITS
from holdfast.inventory.site import SITE
from holdfast.inventory.stock.model import GetStockHistory
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import translatable
from holdfast.kit.contract.problems import invalid
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, try_form
from holdfast.kit.pages.language import language_of

NEW_KEY = f"{AGENTS}/key"
END_KEY = f"{AGENTS}/key/end"

ALLOWED = {
    "read_inventory": translatable("See quantities, the history and what can be sold."),
    "write_inventory": translatable("Sell, count, hold and move stock."),
    "read_pools": translatable("See pools and their variants."),
    "write_pools": translatable("Make and change pools and their packs."),
}
"""The words for what each scope allows."""

EXAMPLES = (
    translatable("“How many honey jars are left?”"),
    translatable("“Two jars broke: take them out.”"),
    translatable("“What will sell out this week?”"),
)
"""What merchants say to an agent in a chat."""

SUGGESTED_SCOPES = ("read_inventory", "read_pools")
"""The scopes that the form of a first key suggests: to look at stock. What changes something is chosen on purpose."""

TEMPLATES = AgentTemplates(
    base="console/page.html",
    action_sentences="console/agents/action_sentences.html",
    request_sentences="console/agents/request_sentences.html",
    keys="console/agents/key_section.html",
    counts="units",
)

ICONS: Mapping[str, str] = {
    "sale": "shopping-cart",
    "cancel": "undo-2",
    "restock": "truck",
    "set": "clipboard-check",
    "transfer": "arrow-right-left",
    "hold": "hand",
    "release": "hand",
    "reconcile": "refresh-cw",
    "import": "sheet",
    "revert": "undo-2",
}
"""The icon of each kind of entry; a pencil for any other."""

ACTION_ICONS: Mapping[str, str] = {
    "create_pool": "package-plus",
    "update_pool": "pencil",
    "pause_pool": "pause",
    "resume_pool": "play",
    "archive_pool": "archive",
    "restore_pool": "archive-restore",
    "link_variants": "link",
    "update_member": "pencil",
    "unlink_variants": "unlink",
    "import_csv": "sheet",
    "resync": "refresh-cw",
}
"""The icon of each operation on pools and variants."""


class ThreadPosition(NamedTuple):
    """Where the thread goes on: the oldest entry and the oldest action that were shown; None: none of them was."""

    entry_id: int | None = None
    action_id: int | None = None

    @property
    def text(self) -> str:
        return f"{self.entry_id or ''}-{self.action_id or ''}"


class StockAction(Struct, frozen=True):
    """An entry that an agent made, with its pool. `actors`: the words for actors without a name."""

    row: HistoryRow
    pool: PoolWithMembers
    actors: Mapping[str, str]

    def position(self, before: ThreadPosition) -> ThreadPosition:
        """Where the thread goes on after this one."""
        return before._replace(entry_id=self.row.entry.id)


class PoolAction(Struct, frozen=True):
    """What an agent did to a pool or to its variants."""

    action: AgentAction

    def position(self, before: ThreadPosition) -> ThreadPosition:
        """Where the thread goes on after this one."""
        return before._replace(action_id=self.action.id)


def _position(text: str) -> ThreadPosition:
    """The position in an address. Raises `validation_failed`."""
    if not text:
        return ThreadPosition()
    parts = re.fullmatch("([0-9]{1,18})?-([0-9]{1,18})?", text)
    if not parts:
        raise invalid({"before": ["is not one of ours: open the page of agents again"]})
    return ThreadPosition(*(int(part) if part else None for part in parts.groups()))


def _entry_line(row: HistoryRow, pool: PoolWithMembers) -> AgentLine:
    return AgentLine(
        icon=ICONS.get(row.entry.kind, "pencil"),
        at=row.entry.created_at,
        action=StockAction(row, pool, ACTORS),
        undo=f"/console/pools/{pool.id}/entries/{row.entry.id}/undo" if row.can_be_undone else "",
        is_undone=row.is_undone,
    )


class Opposite(NamedTuple):
    """What undoes an action: the page of a pool, while the pool has the status that the action gave it."""

    status: str
    page: str


OPPOSITES: Mapping[str, Opposite] = {
    "create_pool": Opposite("active", "archive"),
    "pause_pool": Opposite("paused", "resume"),
    "resume_pool": Opposite("active", "pause"),
    "archive_pool": Opposite("archived", "restore"),
    "restore_pool": Opposite("active", "archive"),
}


def _action_line(action: AgentAction) -> AgentLine:
    opposite = OPPOSITES.get(action.operation)
    can_be_undone = opposite is not None and action.pool_status == opposite.status
    return AgentLine(
        icon=ACTION_ICONS[action.operation],
        at=action.done_at,
        action=PoolAction(action),
        undo=f"/console/pools/{action.pool_id}/{opposite.page}" if opposite and can_be_undone else "",
    )


class ShopAgents:
    """What the service knows of the agents of a shop, as `AgentDirectory`."""

    def __init__(
        self, console: Console, platform: Platform, account_runner: Runner, requests: RequestApprovals
    ) -> None:
        self._requests = requests
        self._limits = account_runner.run_of(SHOP_LIMITS.list_limits)
        self._show, self._get_pool = console.run["show_access"], console.run["get_pool"]
        self._actions = console.run["list_shop_agent_actions"]
        self._rows = HistoryRows(console, platform)

    async def cards(self, session: Session, request: Request) -> Sequence[AgentCard]:
        """The key of the shop, if it has one."""
        texts = SITE.texts(language_of(request))
        limits: Sequence[AgentLimit] = await self._limits(merchant(session), ListLimits())
        limit_of = {limit.key_id: limit for limit in limits}
        return [
            AgentCard(
                key_id=key.id,
                name=texts.gettext("The key of your shop"),
                origin=f"{key.text[:KEY_PREFIX_CHARACTERS]}…" if key.text else "",
                abilities=[texts.gettext(ALLOWED[scope]) for scope in key.scopes],
                programs=key.programs,
                since=key.made_at,
                used_at=key.changed_at,
                remove=END_KEY,
                limit=limit_of.get(key.id),
            )
            for key in await self._keys(session)
            if key.active
        ]

    async def lines(self, session: Session, request: Request, before: str, limit: int) -> AgentLines:
        """What agents did to stock and to pools, the newest first."""
        position = _position(before)
        cursor = {"cursor": cursor_after(position.entry_id)} if position.entry_id else {}
        history = check(GetStockHistory, {"actor": "agent", "limit": limit, **cursor})
        rows, older = await self._rows.read(session, request, history)
        ids = sorted({row.entry.pool_id for row in rows})
        pools: Sequence[PoolWithMembers] = await asyncio.gather(
            *(self._get_pool(merchant(session), GetPool(pool_id=id)) for id in ids)
        )
        by_id = dict(zip(ids, pools, strict=True))
        actions: Sequence[AgentAction] = await self._actions(
            merchant(session), ListAgentActions(before=position.action_id, limit=limit + 1)
        )
        both = sorted(
            [*(_entry_line(row, by_id[row.entry.pool_id]) for row in rows), *map(_action_line, actions)],
            key=lambda line: line.at,
            reverse=True,
        )
        lines = both[:limit]
        for line in lines:
            position = line.action.position(position)
        return AgentLines(lines, position.text if older or len(both) > limit else "")

    async def requests(self, session: Session, request: Request) -> Sequence[RequestCard]:
        """What waits for the merchant."""
        waiting_requests = await self._requests.list_waiting(merchant(session), MAX_REQUESTS)
        return [await describe(session, request, waiting_request) for waiting_request in waiting_requests]

    async def values(self, session: Session, request: Request) -> Mapping[str, Any]:
        """The key of the shop, and the keys before it."""
        keys = await self._keys(session)
        active = [key for key in keys if key.active]
        return {"key": active[0] if active else None, "former": [key for key in keys if not key.active]}

    async def _keys(self, session: Session) -> Sequence[Key]:
        return await self._show(merchant(session), ShowAccess())


class AgentPages:
    """Answers requests for the page, for a new key, and for the end of the key."""

    def __init__(
        self, console: Console, platform: Platform, base_url: str, account_runner: Runner, requests: RequestApprovals
    ) -> None:
        self._console = console
        self._show, self._renew = console.run["show_access"], console.run["renew_key"]
        self._end = console.run["end_key"]
        self._connection = ConnectionDetails(f"{base_url}/mcp", "holdfast-inventory", by_oauth=False)
        self._base_url = base_url
        directory = ShopAgents(console, platform, account_runner, requests)
        self._agents = AgentsPage(console, directory, self._connection, TEMPLATES)
        self._requests = RequestsPage(console, self._agents, requests, merchant, describe)

    def routes(self) -> list[Route]:
        return [
            *SITE.assets("copy.js"),
            connection_page_route(
                SITE,
                self._console.signed_in.limits,
                base_url=self._base_url,
                connection=self._connection,
                abilities=[*ALLOWED.values()],
                examples=EXAMPLES,
                manual="/auth.md",
            ),
            *self._agents.routes(),
            *self._requests.routes(),
            self._agents.moved("/console/settings/key", "former_new_key"),
            self._console.route(NEW_KEY, "new_key", self.renew, "POST"),
            self._console.route(END_KEY, "end_key", self.end, "POST"),
        ]

    async def renew(self, session: Session, request: Request) -> Reply:
        """Show the form for the scopes of a new key, or make it: the old one ends."""
        if request.method != "POST":
            return await self._new_key_page(session, request, None)
        fields = await self._console.signed_in.read(session, request)
        scopes = [scope for scope in SCOPES if scope in fields]
        outcome = await try_form(lambda: self._renew_key(session, scopes))
        if isinstance(outcome, FormRefusal):
            return await self._new_key_page(session, request, scopes, outcome)
        return self._console.redirect(request, AGENTS)

    async def end(self, session: Session, request: Request) -> Reply:
        """Ask whether to end the key, or end it."""
        if request.method != "POST":
            return self._page(session, request, "agents/end_key.html", key=await self._active_key(session))
        await self._console.signed_in.read(session, request)
        await self._end(merchant(session), EndKey())
        return self._console.redirect(request, AGENTS)

    async def _renew_key(self, session: Session, scopes: Sequence[str]) -> None:
        await self._renew(merchant(session), check(RenewKey, {"scopes": scopes}))

    async def _new_key_page(
        self, session: Session, request: Request, scopes: Sequence[str] | None, refusal: FormRefusal = NOT_REFUSED
    ) -> Reply:
        """The form of a new key. `scopes`: those that were chosen; None: of the present key, or suggested ones."""
        key = await self._active_key(session)
        present = key.scopes if key else SUGGESTED_SCOPES
        return self._page(
            session,
            request,
            "agents/replace_key.html" if key else "agents/new_key.html",
            refusal.status,
            chosen=present if scopes is None else scopes,
            key=key,
            refused=bool(refusal.errors),
        )

    async def _active_key(self, session: Session) -> Key | None:
        """The key of the shop; None if it has none."""
        keys: Sequence[Key] = await self._show(merchant(session), ShowAccess())
        return next((key for key in keys if key.active), None)

    def _page(self, session: Session, request: Request, template: str, status: int = 200, **values: Any) -> Reply:
        return self._console.page(session, request, template, status, here=AGENTS, allowed=ALLOWED, **values)
