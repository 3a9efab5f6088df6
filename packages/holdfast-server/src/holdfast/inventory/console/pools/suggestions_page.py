"""The page that suggests pools for the products of the shop. Each is made by a click, in one transaction; products that
are not there yet are imported.

Each suggestion says how many units its pool begins with, by which sum, and what the shop then shows. A pool is made
only with numbers that the page has shown: if the merchant has typed others, or the shop has others by now, the page
shows the new ones first.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

from holdfast.accounts.sessions import Session
from holdfast.inventory.catalog.importing import ImportProducts
from holdfast.inventory.catalog.pool_suggestions import (
    FirstStock,
    PoolSuggestion,
    PoolSuggestions,
    ProductVariant,
    SuggestPools,
    quantities_after,
)
from holdfast.inventory.console.frame import HOME, Console, merchant, picture_values, shop_of
from holdfast.inventory.console.number_fields import NumberField, read_numbers
from holdfast.inventory.console.variants.variant_fields import (
    UNITS_PER_SALE,
    UNITS_PREFIX,
    incomplete_form,
    storable_label,
)
from holdfast.inventory.console.variants.variant_names import title_of
from holdfast.inventory.pools.model import CreatePool, GetPool, ListPools, PoolChange, PoolList, PoolWithMembers
from holdfast.inventory.problems import NAME_TAKEN, SHOP_NOT_CONNECTED
from holdfast.inventory.settings import Settings
from holdfast.inventory.shopify.platform_client import Platform
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

LABELS = {"name": translatable("Name"), "quantity": translatable("Units in stock")}

BLOCK = "live-stock"
"""The name of the theme block with the live number, that of its file in `extensions/live-stock/blocks`."""

QUANTITY = NumberField(0, MAX_QUANTITY, 50)

Notice = Literal["", "new_numbers", "typed_numbers", "names_in_use"]
"""What the page says of a form that was sent and not refused: that the shop has new numbers, that the merchant has
typed numbers, or that pools have names of suggestions already. Empty: nothing.
"""


class NewPool(Command):
    """The parameter that names the pool that was just made."""

    new_pool: PoolId


class SuggestionsPage:
    """Answers requests for the suggestions of pools."""

    def __init__(self, console: Console, platform: Platform, settings: Settings) -> None:
        self._console = console
        self._platform = platform
        self._client_id = settings.client_id
        self._settings = settings
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
            result = await try_form(lambda: self._import(merchant(session), ImportProducts()), SHOP_NOT_CONNECTED)
            if isinstance(result, FormRefusal):
                return await self._page(session, request, fields, result)
            return self._console.redirect(request, SUGGESTIONS)
        suggestions = (await self._suggestions(session, fields.get("cursor", ""))).suggestions
        if fields.get("do") == "all":
            return await self._accept_all(session, request, fields, suggestions)
        return await self._accept(session, request, fields, suggestions)

    async def _accept(
        self, session: Session, request: Request, fields: Mapping[str, str], suggestions: Sequence[PoolSuggestion]
    ) -> Reply:
        """Make the pool of one suggestion, unless the page must show its numbers first."""
        variants_by_gid = {member.variant.gid: member.variant for pool in suggestions for member in pool.members}

        async def make() -> PoolChange | None:
            command = _create_command(fields, variants_by_gid)
            for suggestion in suggestions:
                is_sent = _variant_key(suggestion) == fields.get("suggestion")
                if is_sent and _numbers_text(suggestion, fields) != fields.get("numbers"):
                    return None
            return await forms.run_once(self._create, merchant(session), command, fields, PoolChange)

        if _is_outdated(fields, suggestions):
            return await self._page(session, request, {"cursor": fields.get("cursor", "")}, notice="new_numbers")
        change = await try_form(make, NAME_TAKEN)
        if change is None:
            return await self._page(session, request, fields, notice="typed_numbers")
        if isinstance(change, FormRefusal):
            return await self._page(session, request, fields, change)
        return self._console.redirect(request, f"{SUGGESTIONS}?new_pool={change.pool.id}")

    async def _accept_all(
        self, session: Session, request: Request, fields: Mapping[str, str], suggestions: Sequence[PoolSuggestion]
    ) -> Reply:
        """Make the pools of all suggestions of a page, if the page has shown their numbers."""
        cursor = {"cursor": fields.get("cursor", "")}
        if fields.get("numbers") != _numbers_of_all(suggestions):
            return await self._page(session, request, cursor, notice="new_numbers")
        names_in_use: list[str] = []
        for suggestion in suggestions:
            values = {**_form_values(suggestion), "once": fields.get("once", "")}
            command = _create_command(values, {member.variant.gid: member.variant for member in suggestion.members})
            try:
                await forms.run_once(self._create, merchant(session), command, values, PoolChange)
            except Problem as problem:
                if problem.type is not NAME_TAKEN:
                    raise
                names_in_use.append(suggestion.name)
        if names_in_use:
            return await self._page(session, request, cursor, notice="names_in_use", names_in_use=names_in_use)
        return self._console.redirect(request, SUGGESTIONS)

    async def _page(
        self,
        session: Session,
        request: Request,
        fields: Mapping[str, str] | None = None,
        refusal: FormRefusal = NOT_REFUSED,
        *,
        notice: Notice = "",
        names_in_use: Sequence[str] = (),
    ) -> Reply:
        query = read_query(request.query)
        cursor = (fields or query).get("cursor", "")
        suggestions = await self._suggestions(session, cursor)
        return self._console.page(
            session,
            request,
            "pools/suggestions.html",
            refusal.status,
            errors=refusal.errors,
            is_name_in_use=refusal.code == NAME_TAKEN.code,
            is_unconnected=refusal.code == SHOP_NOT_CONNECTED.code,
            notice=notice,
            names_in_use=names_in_use,
            cursor=cursor,
            new_pool=await self._new_pool(session, query),
            labels=LABELS,
            units_prefix=UNITS_PREFIX,
            title_of=title_of,
            once=forms.new_token(),
            scripts=["live.js"],
            **_suggestion_values(suggestions, fields or {}, refusal),
            **await self._shop_values(session, suggestions),
            **picture_values(self._settings),
        )

    async def _shop_values(self, session: Session, suggestions: PoolSuggestions) -> dict[str, Any]:
        """What the template says of the shop: how far it is, and where its theme is edited."""
        pools: PoolList = await self._list(merchant(session), ListPools(limit=1))
        status: SyncStatus = await self._status(merchant(session), GetSyncStatus())
        is_imported = bool(suggestions.variants) or status.imported.status == "done"
        # This service does not know whether the theme shows the live number: step 3 is never done.
        done_steps = [step for step, is_done in ((1, is_imported), (2, bool(pools.pools))) if is_done]
        return {
            "imported": status.imported,
            "is_connected": status.connected,
            "has_pools": bool(pools.pools),
            "step": 2 if suggestions.suggestions else next(number for number in (1, 2, 3) if number not in done_steps),
            "theme_editor": self._theme_editor(shop_of(session)),
            "shop": shop_of(session) if self._client_id else "",
        }

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


class VariantChange(NamedTuple):
    """What the shop shows of a variant now, and with a pool."""

    variant: ProductVariant
    now: int
    after: int


class SuggestionCard(NamedTuple):
    """A suggestion as its form shows it.

    values         of its fields: those that were sent, or the suggested ones
    first_stock    the sum of the quantity; None: the merchant has typed another one
    quantity       the typed or suggested one; None: it cannot be read
    shop_numbers   what the shop shows of each variant that it counts, now and with the pool
    numbers        all numbers that the card shows, as one text
    """

    key: str
    suggestion: PoolSuggestion
    values: Mapping[str, str]
    is_sent: bool
    first_stock: FirstStock | None
    quantity: int | None
    shop_numbers: Sequence[VariantChange]
    numbers: str
    errors: Mapping[str, Sequence[str]]

    @property
    def changes(self) -> Sequence[VariantChange]:
        return [change for change in self.shop_numbers if change.now != change.after]


def _suggestion_values(suggestions: PoolSuggestions, fields: Mapping[str, str], refusal: FormRefusal) -> dict[str, Any]:
    """What the template says of a page of suggestions. The card whose form was sent is the first."""
    cards = [_card_of(suggestion, fields, refusal) for suggestion in suggestions.suggestions]
    return {
        "suggestions": suggestions,
        "cards": sorted(cards, key=lambda card: not card.is_sent),
        "numbers_of_all": _numbers_of_all(suggestions.suggestions),
        "changes": [change for card in cards for change in card.changes],
        "after": suggestions.next_cursor,
    }


def _card_of(suggestion: PoolSuggestion, fields: Mapping[str, str], refusal: FormRefusal) -> SuggestionCard:
    is_sent = fields.get("suggestion") == _variant_key(suggestion)
    values = fields if is_sent else _form_values(suggestion)
    units = {member.variant.gid: f"{UNITS_PREFIX}{member.variant.gid}" for member in suggestion.members}
    numbers, unread = read_numbers(values, {"quantity": QUANTITY, **dict.fromkeys(units.values(), UNITS_PER_SALE)})
    quantity = None if unread else numbers.get("quantity", 0)
    after = (
        {}
        if quantity is None
        else quantities_after(quantity, {gid: numbers[name] for gid, name in units.items() if name in numbers})
    )
    return SuggestionCard(
        key=_variant_key(suggestion),
        suggestion=suggestion,
        values=values,
        is_sent=is_sent,
        first_stock=suggestion.first_stock if _numbers_text(suggestion, values) == _numbers_text(suggestion) else None,
        quantity=quantity,
        shop_numbers=[
            VariantChange(member.variant, member.variant.available, after[member.variant.gid])
            for member in suggestion.members
            if member.variant.gid in after and member.variant.tracked
        ],
        numbers=_numbers_text(suggestion, values),
        errors=refusal.errors if is_sent else {},
    )


def _variant_key(suggestion: PoolSuggestion) -> str:
    """The key of a suggestion on its page: the id of its first variant."""
    return suggestion.members[0].variant.gid


def _form_values(suggestion: PoolSuggestion) -> dict[str, str]:
    """The values in the form of a suggestion."""
    units = {f"{UNITS_PREFIX}{member.variant.gid}": str(member.units_per_sale) for member in suggestion.members}
    return {"name": suggestion.name, "quantity": str(suggestion.quantity), **units}


def _numbers_text(suggestion: PoolSuggestion, fields: Mapping[str, str] | None = None) -> str:
    """The quantity and the units of each variant in the form of a suggestion. None: the suggested ones."""
    values = _form_values(suggestion) if fields is None else fields
    names = ["quantity", *(f"{UNITS_PREFIX}{member.variant.gid}" for member in suggestion.members)]
    return " ".join(values.get(name) or "-" for name in names)


def _numbers_of_all(suggestions: Sequence[PoolSuggestion]) -> str:
    """What tells all numbers of a page from others."""
    numbers = [f"{_variant_key(suggestion)} {_numbers_text(suggestion)}" for suggestion in suggestions]
    return hashlib.sha256(repr(numbers).encode()).hexdigest()


def _is_outdated(fields: Mapping[str, str], suggestions: Sequence[PoolSuggestion]) -> bool:
    """Whether the quantity in a form is the suggested one of its page, and another one is suggested by now."""
    return any(
        _variant_key(suggestion) == fields.get("suggestion")
        and fields.get("quantity") == fields.get("suggested") != str(suggestion.quantity)
        for suggestion in suggestions
    )


def _create_command(fields: Mapping[str, str], variants_by_gid: Mapping[str, ProductVariant]) -> CreatePool:
    """The command of the form of a suggestion. Raises `validation_failed`."""
    units = {name: UNITS_PER_SALE for name in fields if name.startswith(UNITS_PREFIX)}
    numbers, unread = read_numbers(fields, {"quantity": QUANTITY, **units})
    if not units:
        raise incomplete_form()
    if not fields.get("name"):
        unread["name"] = [message("Enter a name, such as Honey jars.")]
    members: Sequence[dict[str, Any]] = [
        {
            "variant_gid": (gid := name.removeprefix(UNITS_PREFIX)),
            "units_per_sale": numbers[name],
            "sku": storable_label(variant.sku) if (variant := variants_by_gid.get(gid)) else None,
            "title": storable_label(title_of(variant)) if variant else None,
        }
        for name in units
        if name in numbers  # a variant whose field was emptied stays out
    ]
    values = {"name": fields.get("name", ""), "quantity": numbers.get("quantity", 0), "members": members}
    return check(CreatePool, {name: value for name, value in values.items() if value != ""}, unread=unread)
