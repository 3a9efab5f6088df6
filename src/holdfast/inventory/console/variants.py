"""The variants that draw on a pool. Each change is shown with the numbers that result before it is made."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.inventory.catalog.names import ONLY_VARIANT
from holdfast.inventory.catalog.operations import Hit, Hits, SearchVariants
from holdfast.inventory.console.frame import Console, merchant
from holdfast.inventory.console.naming import names_of
from holdfast.inventory.pools.model import (
    ChangePool,
    GetPool,
    Label,
    LinkVariants,
    PausePool,
    PoolChange,
    PoolWithMembers,
    UnlinkVariants,
    UpdateMember,
)
from holdfast.inventory.problems import POOL_NOT_ACTIVE, STALE
from holdfast.kit.command import check, numbered
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.pages import once
from holdfast.kit.pages.own import named
from holdfast.kit.pages.refusal import NOT_REFUSED, Refusal, tried
from holdfast.kit.problems import BAD_REQUEST, Problem, invalid
from holdfast.kit.said import marked, said

SHOWN = 20
"""How many variants a search shows. Each has a field in the form, which may have 50."""

UNITS = "units:"
"""How the field begins that has the units per sale of a variant."""

DOES = {"link": "link_variants", "change": "update_member", "unlink": "unlink_variants"}
"""What the forms ask for, and the operation that does it."""

LABELS = {"variant_gid": marked("Id of the variant"), "units_per_sale": marked("Units per sale")}


class VariantsPage:
    """Answers requests for the variants of a pool."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._get, self._search = console.run["get_pool"], console.run["search_variants"]
        self._run = {name: console.run[operation] for name, operation in DOES.items()}

    def routes(self) -> list[BaseRoute]:
        return [self._console.route("/console/pools/{pool_id}/variants", "variants", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the variants of a pool and others to link; then what a change would do; then make it."""
        command = named(GetPool, request)
        pool: PoolWithMembers = await self._get(merchant(session), command)
        if request.method != "POST":
            return await self._list(session, request, pool, read_query(request.query))
        fields = await self._console.door.read(session, request)
        done = await tried(lambda: self._asked(session, request, pool, fields), POOL_NOT_ACTIVE)
        if isinstance(done, Refusal):
            return await self._list(session, request, pool, fields, done)
        return done

    async def _asked(
        self, session: Session, request: Request, pool: PoolWithMembers, fields: Mapping[str, str]
    ) -> Reply:
        """Make the change that a form asks for, if it was shown what it does; else show that."""
        hits = await self._found(session, fields)
        does = fields.get("do", "")
        change = wished(does, pool.id, fields, hits)
        sure = fields.get("sure")
        if sure is None:
            return await self._preview(session, request, pool, fields, change)
        if isinstance(change, LinkVariants):
            # What is not one of both is refused by the command.
            change = check(LinkVariants, {**msgspec.structs.asdict(change), "initial": sure})
        change = msgspec.structs.replace(change, expected_version=_version(pool.id, fields))
        done = await tried(lambda: once.run(self._run[does], merchant(session), change, fields, PoolChange), STALE)
        if isinstance(done, Refusal):
            if done.code != STALE.code:
                raise invalid({name: [*messages] for name, messages in done.errors.items()})
            change = msgspec.structs.replace(change, expected_version=None)
            return await self._preview(session, request, pool, fields, change, stale=True)
        return self._console.to(request, f"/console/pools/{pool.id}/variants")

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
        """Show what a change would do, and ask whether it is to be made."""
        run = self._run[fields["do"]]
        caller = merchant(session)
        choices: dict[str, PoolChange] = {"keep_pool": await run(caller, msgspec.structs.replace(change, dry_run=True))}
        if isinstance(change, LinkVariants):
            adding = msgspec.structs.replace(change, dry_run=True, initial="sum_from_platform")
            added = await tried(lambda: run(caller, adding))
            if not isinstance(added, Refusal) and added.pool.on_hand != pool.on_hand:
                choices["sum_from_platform"] = added
        gids = _gids(change)
        shown = [each.variant_gid for choice in choices.values() for each in choice.affected]
        return self._console.page(
            session,
            request,
            "variants_preview.html",
            409 if stale else 200,
            pool=pool,
            choices=choices,
            kept={name: value for name, value in fields.items() if name not in {"sure", "once", "version"}},
            does=fields["do"],
            names=await names_of(self._console, session, request, [*gids, *shown]),
            gids=gids,
            stale=stale,
            once=once.new(),
        )

    async def _list(
        self,
        session: Session,
        request: Request,
        pool: PoolWithMembers,
        fields: Mapping[str, str],
        refusal: Refusal = NOT_REFUSED,
    ) -> Reply:
        hits = await self._found(session, fields)
        gids = [each.variant_gid for each in (*pool.members, *hits)]
        return self._console.page(
            session,
            request,
            "variants.html",
            refusal.status,
            pool=pool,
            hits=hits[:SHOWN],
            names=await names_of(self._console, session, request, gids),
            more=len(hits) > SHOWN,
            values=fields,
            errors=refusal.errors,
            archived=refusal.code == POOL_NOT_ACTIVE.code or pool.status == "archived",
            labels=LABELS,
        )

    async def _found(self, session: Session, fields: Mapping[str, str]) -> Sequence[Hit]:
        """The variants that somebody searches, and one more if there are more than are shown."""
        searched = {"query": fields.get("q") or None, "unlinked_only": "unlinked" in fields, "limit": SHOWN + 1}
        found: Hits = await self._search(merchant(session), check(SearchVariants, searched))
        return found.variants


def wished(does: str, pool_id: int, fields: Mapping[str, str], hits: Sequence[Hit]) -> ChangePool:
    """The change that a form asks for. Raises `validation_failed` with the fields of the form."""
    if does == "link":
        return LinkVariants(pool_id=pool_id, members=check(LinkVariants, _linking(pool_id, fields, hits)).members)
    if does not in DOES:
        raise incomplete()
    gid = fields.get("variant_gid", "")
    if does == "unlink":
        return check(UnlinkVariants, {"pool_id": pool_id, "variant_gids": [gid]})
    try:
        return _member(pool_id, gid, fields.get("units", ""))
    except Problem as problem:
        raise invalid({f"change:{gid}": [*problem.errors.get("units_per_sale", ())]}) from problem


def _linking(pool_id: int, fields: Mapping[str, str], hits: Sequence[Hit]) -> Mapping[str, Any]:
    """What `link_variants` takes: the variants whose units are given, and the one that is named by its id."""
    known = {each.variant_gid: each for each in hits}
    given = {name.removeprefix(UNITS): text for name, text in fields.items() if name.startswith(UNITS) and text}
    errors: dict[str, list[str]] = {}
    members: list[dict[str, Any]] = []
    for gid, text in given.items():
        try:
            member = _member(pool_id, gid, text)
        except Problem as problem:
            if "variant_gid" in problem.errors:
                raise incomplete() from problem
            errors[f"{UNITS}{gid}"] = [*problem.errors["units_per_sale"]]
        else:
            hit = known.get(gid)
            words = {"sku": fit(hit.sku), "title": fit(titled(hit))} if hit else {}
            members.append({"variant_gid": gid, "units_per_sale": member.units_per_sale, **words})
    if own := fields.get("variant_gid"):
        try:
            member = _member(pool_id, own, fields.get("units_per_sale", ""))
        except Problem as problem:
            errors |= {name: [*messages] for name, messages in problem.errors.items()}
        else:
            members.append({"variant_gid": own, "units_per_sale": member.units_per_sale})
    if errors or not members:
        raise invalid(errors or {"members": [said("Say for at least one variant how much one sale of it takes.")]})
    return {"pool_id": pool_id, "members": members}


def _version(pool_id: int, fields: Mapping[str, str]) -> int | None:
    """The version that the pool had when a change was shown."""
    raw = {"expected_version": fields.get("version", "")}
    try:
        return check(PausePool, {"pool_id": pool_id, **numbered(PausePool, raw)}).expected_version
    except Problem as problem:
        raise incomplete() from problem


def incomplete() -> Problem:
    """The refusal of a form that no page of ours has."""
    return BAD_REQUEST("The form is not complete.", hint="Open the page again and send its form.")


def _member(pool_id: int, gid: str, units: str) -> UpdateMember:
    raw = {"variant_gid": gid, "units_per_sale": units}
    return check(UpdateMember, {**numbered(UpdateMember, raw), "pool_id": pool_id})


def titled(hit: Hit) -> str:
    """What people call a variant."""
    return hit.product_title if hit.title == ONLY_VARIANT else f"{hit.product_title} · {hit.title}"


def fit(text: str | None) -> str | None:
    """A text of the platform, if it is one that a pool keeps with a variant; else None."""
    try:
        return msgspec.convert(text, Label | None)
    except msgspec.ValidationError:
        return None


def _gids(change: ChangePool) -> Sequence[str]:
    """The variants that a change names."""
    match change:
        case LinkVariants():
            return [each.variant_gid for each in change.members]
        case UnlinkVariants():
            return change.variant_gids
        case UpdateMember():
            return [change.variant_gid]
        case _:
            return []
