"""The page that suggests pools for the products of the shop. Each is made by a click, in one transaction; products that
are not there yet are imported.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from holdfast.accounts.sessions import Session
from holdfast.inventory.catalog.importing import ImportProducts
from holdfast.inventory.catalog.model import ONLY_VARIANT
from holdfast.inventory.catalog.pool_suggestions import (
    PoolSuggestion,
    PoolSuggestions,
    ProductVariant,
    SuggestPools,
)
from holdfast.inventory.console.frame import HOME, Console, merchant, shop_of
from holdfast.inventory.console.number_fields import NumberField, read_numbers
from holdfast.inventory.console.variants.variants import UNITS_PER_SALE, UNITS_PREFIX, incomplete, storable_label
from holdfast.inventory.pools.model import CreatePool, GetPool, ListPools, PoolChange, PoolList, PoolWithMembers
from holdfast.inventory.problems import NAME_TAKEN, SHOP_NOT_CONNECTED
from holdfast.inventory.shopify.platform import Platform
from holdfast.inventory.stock.model import MAX_QUANTITY, PoolId
from holdfast.inventory.sync.model import GetSyncStatus, SyncStatus
from holdfast.kit.contract.command import Command, check, with_integers
from holdfast.kit.contract.messages import message, translatable
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, try_form

SUGGESTIONS = f"{HOME}/suggestions"

LABELS = {"name": translatable("Name"), "quantity": translatable("Single units in stock")}

BLOCK = "live-stock"
"""The name of the theme block with the live number, that of its file in `extensions/live-stock/blocks`."""

QUANTITY = NumberField(0, MAX_QUANTITY, 50)


class NewPool(Command):
    """The parameter that names the pool that was just made."""

    new_pool: PoolId


class SuggestionsPage:
    """Answers requests for the suggestions of pools."""

    def __init__(self, console: Console, platform: Platform, client_id: str) -> None:
        self._console = console
        self._platform = platform
        self._client_id = client_id
        self._suggest, self._create = console.run["suggest_pools"], console.run["create_pool"]
        self._import, self._status = console.run["import_products"], console.run["get_sync_status"]
        self._pool, self._list = console.run["get_pool"], console.run["list_pools"]

    def routes(self) -> list[Route]:
        return [self._console.route(SUGGESTIONS, "suggestions", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show suggestions, make the pool of one, or start to import the products."""
        if request.method != "POST":
            return await self._page(session, request)
        fields = await self._console.signed_in.read(session, request)
        if fields.get("do") == "import":
            started = await try_form(lambda: self._import(merchant(session), ImportProducts()), SHOP_NOT_CONNECTED)
            if isinstance(started, FormRefusal):
                return await self._page(session, request, fields, started)
            return self._console.to(request, SUGGESTIONS)
        suggestions = await self._suggestions(session, fields.get("cursor", ""))
        known = {member.variant.gid: member.variant for pool in suggestions.suggestions for member in pool.members}
        done = await try_form(
            lambda: forms.run_once(self._create, merchant(session), _create_command(fields, known), fields, PoolChange),
            NAME_TAKEN,
        )
        if isinstance(done, FormRefusal):
            return await self._page(session, request, fields, done)
        return self._console.to(request, f"{SUGGESTIONS}?new_pool={done.pool.id}")

    async def _page(
        self,
        session: Session,
        request: Request,
        fields: Mapping[str, str] | None = None,
        refusal: FormRefusal = NOT_REFUSED,
    ) -> Reply:
        query = read_query(request.query)
        cursor = (fields or query).get("cursor", "")
        suggestions = await self._suggestions(session, cursor)
        pools: PoolList = await self._list(merchant(session), ListPools(limit=1))
        state: SyncStatus = await self._status(merchant(session), GetSyncStatus())
        is_imported = bool(suggestions.variants) or state.imported.status == "done"
        # This service does not know whether the theme shows the live number: step 3 is never done.
        done = [step for step, is_done in ((1, is_imported), (2, bool(pools.pools))) if is_done]
        return self._console.page(
            session,
            request,
            "pools/suggestions.html",
            refusal.status,
            read=suggestions,
            suggestions=[(_key(suggestion), suggestion, _values(suggestion)) for suggestion in suggestions.suggestions],
            imported=state.imported,
            is_connected=state.connected,
            is_unconnected=refusal.code == SHOP_NOT_CONNECTED.code,
            done=done,
            step=2 if suggestions.suggestions else next(number for number in (1, 2, 3) if number not in done),
            after=suggestions.next_cursor,
            cursor=cursor,
            sent=fields or {},
            errors=refusal.errors,
            is_name_taken=refusal.code == NAME_TAKEN.code,
            labels=LABELS,
            scripts=["live.js"],
            units_prefix=UNITS_PREFIX,
            title_of=_title_of,
            new_pool=await self._new_pool(session, query),
            has_pools=bool(pools.pools),
            theme_editor=self._theme_editor(shop_of(session)),
            shop=shop_of(session) if self._client_id else "",
            once=forms.new_token(),
        )

    async def _suggestions(self, session: Session, cursor: str) -> PoolSuggestions:
        return await self._suggest(merchant(session), check(SuggestPools, {"cursor": cursor or None}))

    def _theme_editor(self, shop: str) -> str:
        """The address at which the theme editor adds the live number to pages of products; empty without an app.

        See "Configure theme app extensions: deep linking" in the documents of the platform.
        """
        if not self._client_id or not shop:
            return ""
        query = {"template": "product", "addAppBlockId": f"{self._client_id}/{BLOCK}", "target": "mainSection"}
        return self._platform.at(shop, f"/admin/themes/current/editor?{urlencode(query)}")

    async def _new_pool(self, session: Session, query: Mapping[str, str]) -> PoolWithMembers | None:
        """The pool that was just made; None if the address names none of the shop."""
        if "new_pool" not in query:
            return None
        try:
            parameter = check(NewPool, with_integers(NewPool, {"new_pool": query["new_pool"]}))
            return await self._pool(merchant(session), GetPool(pool_id=parameter.new_pool, include_members=False))
        except Problem as problem:
            if problem.type is NOT_FOUND or problem.errors:
                return None
            raise


def _key(suggestion: PoolSuggestion) -> str:
    """What tells a suggestion from the others of a page."""
    return suggestion.members[0].variant.gid


def _values(suggestion: PoolSuggestion) -> dict[str, str]:
    """The values in the form of a suggestion."""
    units = {f"{UNITS_PREFIX}{member.variant.gid}": str(member.units_per_sale) for member in suggestion.members}
    return {"name": suggestion.name, "quantity": str(suggestion.quantity), **units}


def _title_of(variant: ProductVariant) -> str:
    """The title of a variant with that of its product."""
    return variant.product_title if variant.title == ONLY_VARIANT else f"{variant.product_title} · {variant.title}"


def _create_command(fields: Mapping[str, str], known: Mapping[str, ProductVariant]) -> CreatePool:
    """The command of the form of a suggestion. Raises `validation_failed`."""
    units = {name: UNITS_PER_SALE for name in fields if name.startswith(UNITS_PREFIX)}
    numbers, unread = read_numbers(fields, {"quantity": QUANTITY, **units})
    if not units:
        raise incomplete()
    if not fields.get("name"):
        unread["name"] = [message("Enter a name, such as Honey jars.")]
    members: Sequence[dict[str, Any]] = [
        {
            "variant_gid": (gid := name.removeprefix(UNITS_PREFIX)),
            "units_per_sale": numbers[name],
            "sku": storable_label(variant.sku) if (variant := known.get(gid)) else None,
            "title": storable_label(_title_of(variant)) if variant else None,
        }
        for name in units
        if name in numbers  # a variant whose field was emptied stays out
    ]
    values = {"name": fields.get("name", ""), "quantity": numbers.get("quantity", 0), "members": members}
    return check(CreatePool, {name: value for name, value in values.items() if value != ""}, unread=unread)
