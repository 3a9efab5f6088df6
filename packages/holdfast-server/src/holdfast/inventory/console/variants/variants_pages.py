"""The pages of the variants of a pool: the list, and why no more of one can be sold. The effect of each change is
shown before it is made.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.accounts.sessions import Session
from holdfast.inventory.availability.model import ExplainAvailability, Explanation
from holdfast.inventory.catalog.operations import Hit, Hits, SearchVariants
from holdfast.inventory.console.frame import HOME, Console, merchant, shop_of
from holdfast.inventory.console.variants.variant_fields import (
    UNITS_PER_SALE,
    UNITS_PREFIX,
    incomplete_form,
    storable_label,
)
from holdfast.inventory.console.variants.variant_names import names_of, title_of
from holdfast.inventory.installs.operations import GetConnection
from holdfast.inventory.pools.model import (
    ChangePool,
    GetPool,
    LinkVariants,
    PausePool,
    PoolChange,
    PoolWithMembers,
    UnlinkVariants,
    UpdateMember,
)
from holdfast.inventory.problems import POOL_NOT_ACTIVE, STALE
from holdfast.inventory.settings import Settings
from holdfast.kit.contract.command import check, with_integers
from holdfast.kit.contract.messages import message, translatable
from holdfast.kit.contract.problems import NOT_FOUND, VALIDATION_FAILED, Problem, invalid
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, command_in_path, try_form

PAGE_SIZE = 20
"""The most variants in a search. Each has a field in the form, which may have 50."""

OPERATION_OF = {"link": "link_variants", "change": "update_member", "unlink": "unlink_variants"}
"""The actions of the forms, and the operation of each."""

LABELS = {"variant_gid": translatable("Shopify id of the variant"), "units_per_sale": translatable("Units per sale")}

VARIANT = f"{HOME}/variant"


class VariantsPage:
    """Answers requests for the variants of a pool."""

    def __init__(self, console: Console, settings: Settings) -> None:
        self._console = console
        self._get, self._search = console.run["get_pool"], console.run["search_variants"]
        self._is_connected, self._client_id = console.run["is_shop_connected"], settings.client_id
        self._run = {name: console.run[operation] for name, operation in OPERATION_OF.items()}

    def routes(self) -> list[Route]:
        return [
            self._console.route("/console/pools/{pool_id}/variants", "variants", self.answer, "POST"),
        ]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the variants of a pool and others to link, then the preview of a change, then make it."""
        command = command_in_path(GetPool, request)
        pool: PoolWithMembers = await self._get(merchant(session), command)
        if request.method != "POST":
            return await self._list(session, request, pool, read_query(request.query))
        fields = await self._console.signed_in.read(session, request)
        outcome = await try_form(lambda: self._change_or_preview(session, request, pool, fields), POOL_NOT_ACTIVE)
        if isinstance(outcome, FormRefusal):
            return await self._list(session, request, pool, fields, outcome)
        return outcome

    async def _change_or_preview(
        self, session: Session, request: Request, pool: PoolWithMembers, fields: Mapping[str, str]
    ) -> Reply:
        """Make the change of a form if its preview was confirmed; else show the preview."""
        hits = await self._search_hits(session, fields)
        action = fields.get("do", "")
        change = change_command(action, pool.id, fields, hits)
        sure = fields.get("sure")
        if sure is None:
            return await self._preview(session, request, pool, fields, change)
        if isinstance(change, LinkVariants):
            # The command refuses any other value.
            change = check(LinkVariants, {**msgspec.structs.asdict(change), "initial": sure})
        change = msgspec.structs.replace(change, expected_version=_version(pool.id, fields))
        outcome = await try_form(
            lambda: forms.run_once(self._run[action], merchant(session), change, fields, PoolChange), STALE
        )
        if isinstance(outcome, FormRefusal):
            if outcome.code != STALE.code:
                raise invalid({name: [*messages] for name, messages in outcome.errors.items()})
            change = msgspec.structs.replace(change, expected_version=None)
            return await self._preview(session, request, pool, fields, change, stale=True)
        return self._console.redirect(request, f"/console/pools/{pool.id}/variants")

    async def _preview(
        self,
        session: Session,
        request: Request,
        pool: PoolWithMembers,
        fields: Mapping[str, str],
        change: ChangePool,
        *,
        stale: bool = False,
    ) -> Reply:
        """Show the effect of a change, and ask for confirmation."""
        run = self._run[fields["do"]]
        caller = merchant(session)
        choices: dict[str, PoolChange] = {"keep_pool": await run(caller, msgspec.structs.replace(change, dry_run=True))}
        if isinstance(change, LinkVariants):
            adding = msgspec.structs.replace(change, dry_run=True, initial="sum_from_platform")
            other_choice = await try_form(lambda: run(caller, adding))
            if not isinstance(other_choice, FormRefusal) and other_choice.pool.on_hand != pool.on_hand:
                choices["sum_from_platform"] = other_choice
        gids = _gids(change)
        affected_gids = [effect.variant_gid for choice in choices.values() for effect in choice.affected]
        return self._console.page(
            session,
            request,
            "variants/variants_preview.html",
            409 if stale else 200,
            pool=pool,
            choices=choices,
            hidden_values={name: value for name, value in fields.items() if name not in {"sure", "once", "version"}},
            action=fields["do"],
            names=await names_of(self._console, session, request, [*gids, *affected_gids]),
            gids=gids,
            units_after=change.units_per_sale if isinstance(change, UpdateMember) else None,
            stale=stale,
            once=forms.new_token(),
        )

    async def _list(
        self,
        session: Session,
        request: Request,
        pool: PoolWithMembers,
        fields: Mapping[str, str],
        refusal: FormRefusal = NOT_REFUSED,
    ) -> Reply:
        candidates = await self._search_hits(session, fields)
        hits = [hit for hit in candidates if pool.id not in hit.pool_ids]
        gids = [variant.variant_gid for variant in (*pool.members, *hits)]
        return self._console.page(
            session,
            request,
            "variants/variants.html",
            refusal.status,
            pool=pool,
            hits=hits[:PAGE_SIZE],
            names=await names_of(self._console, session, request, gids),
            more=len(candidates) > PAGE_SIZE,
            values=fields,
            errors=refusal.errors,
            archived=refusal.code == POOL_NOT_ACTIVE.code or pool.status == "archived",
            labels=LABELS,
            is_connected=await self._is_connected(merchant(session), GetConnection()),
            shop=shop_of(session) if self._client_id else "",
        )

    async def _search_hits(self, session: Session, fields: Mapping[str, str]) -> Sequence[Hit]:
        """The variants that match the search, and one more if there are more than are shown."""
        searched = {"query": fields.get("q") or None, "unlinked_only": "unlinked" in fields, "limit": PAGE_SIZE + 1}
        hits: Hits = await self._search(merchant(session), check(SearchVariants, searched))
        return hits.variants


def change_command(action: str, pool_id: int, fields: Mapping[str, str], hits: Sequence[Hit]) -> ChangePool:
    """The change of a form. Raises `validation_failed` with the fields of the form."""
    if action == "link":
        return LinkVariants(pool_id=pool_id, members=check(LinkVariants, _link_fields(pool_id, fields, hits)).members)
    if action not in OPERATION_OF:
        raise incomplete_form()
    gid = fields.get("variant_gid", "")
    if action == "unlink":
        return check(UnlinkVariants, {"pool_id": pool_id, "variant_gids": [gid]})
    try:
        return _member(pool_id, gid, fields.get("units", ""))
    except Problem as problem:
        raise invalid({f"change:{gid}": [*problem.errors.get("units_per_sale", ())]}) from problem


def _link_fields(pool_id: int, fields: Mapping[str, str], hits: Sequence[Hit]) -> Mapping[str, Any]:
    """The arguments of `link_variants`: the variants with units, and the one named by its id."""
    hits_by_gid = {hit_row.variant_gid: hit_row for hit_row in hits}
    units_by_gid = {
        name.removeprefix(UNITS_PREFIX): text for name, text in fields.items() if name.startswith(UNITS_PREFIX) and text
    }
    errors: dict[str, list[str]] = {}
    members: list[dict[str, Any]] = []
    for gid, text in units_by_gid.items():
        try:
            member = _member(pool_id, gid, text)
        except Problem as problem:
            if "variant_gid" in problem.errors:
                raise incomplete_form() from problem
            errors[f"{UNITS_PREFIX}{gid}"] = [*problem.errors["units_per_sale"]]
        else:
            hit = hits_by_gid.get(gid)
            words = {"sku": storable_label(hit.sku), "title": storable_label(title_of(hit))} if hit else {}
            members.append({"variant_gid": gid, "units_per_sale": member.units_per_sale, **words})
    if typed_gid := fields.get("variant_gid"):
        try:
            member = _member(pool_id, typed_gid, fields.get("units_per_sale", ""))
        except Problem as problem:
            errors |= {name: [*messages] for name, messages in problem.errors.items()}
        else:
            members.append({"variant_gid": typed_gid, "units_per_sale": member.units_per_sale})
    if errors or not members:
        raise invalid(errors or {"members": [message("Enter for at least one variant how many units one sale takes.")]})
    return {"pool_id": pool_id, "members": members}


def _version(pool_id: int, fields: Mapping[str, str]) -> int | None:
    """The version of the pool at the preview of a change."""
    raw = {"expected_version": fields.get("version", "")}
    try:
        return check(PausePool, {"pool_id": pool_id, **with_integers(PausePool, raw)}).expected_version
    except Problem as problem:
        raise incomplete_form() from problem


def _member(pool_id: int, gid: str, units: str) -> UpdateMember:
    number = UNITS_PER_SALE.read(units)
    unread = {"units_per_sale": [number]} if isinstance(number, str) else {}
    return check(UpdateMember, {"variant_gid": gid, "units_per_sale": number, "pool_id": pool_id}, unread=unread)


def _gids(change: ChangePool) -> Sequence[str]:
    """The variants that a change names."""
    match change:
        case LinkVariants():
            return [member.variant_gid for member in change.members]
        case UnlinkVariants():
            return change.variant_gids
        case UpdateMember():
            return [change.variant_gid]
        case _:
            return []


class VariantPage:
    """Answers requests for the computation of a variant."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._explain = console.run["explain_availability"]

    def routes(self) -> list[Route]:
        return [self._console.route(VARIANT, "variant", self.show)]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show what each pool allows of a variant."""
        try:
            command = check(ExplainAvailability, {"variant_gid": read_query(request.query).get("gid")})
        except Problem as problem:
            if problem.type is VALIDATION_FAILED:
                raise NOT_FOUND() from problem
            raise
        explanation: Explanation = await self._explain(merchant(session), command)
        names = await names_of(self._console, session, request, [explanation.variant_gid])
        return self._console.page(
            session,
            request,
            "variants/variant.html",
            explanation=explanation,
            name=names[explanation.variant_gid],
            scripts=["live.js"],
        )
