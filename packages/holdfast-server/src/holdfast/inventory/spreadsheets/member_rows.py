"""Imports rows of members. A variant is named by its global id, or by a SKU that one variant only has."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from holdfast.inventory.pools import membership
from holdfast.inventory.pools import operations as pools
from holdfast.inventory.pools.model import MemberFields
from holdfast.inventory.resources import Tx
from holdfast.inventory.spreadsheets import sheet
from holdfast.inventory.spreadsheets.import_report import (
    apply,
    cell_changes,
    nothing_imported,
    repeated,
    repeated_message,
)
from holdfast.inventory.spreadsheets.known_pools import KnownPools, find_pools
from holdfast.inventory.spreadsheets.model import ImportCsv, Imported, MemberRow, Row, RowRefusal
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.messages import Message, message


async def load_members(tx: Tx, caller: Caller, command: ImportCsv) -> Imported:
    rows, refused = sheet.read_rows(command.text, MemberRow)
    known = await find_pools(tx, caller.tenant, [(row.pool, row.pool_id) for _, row in rows])
    skus = {row.sku for _, row in rows if row.sku and not row.variant_gid}
    gids_by_sku = await membership.find_by_sku(tx, caller.tenant, skus) if skus else {}
    links: list[tuple[int, MemberFields]] = []
    linked_rows: list[tuple[int, MemberRow]] = []
    for line, row in rows:
        link = _link(row, known, gids_by_sku)
        if isinstance(link, Message):
            refused.append(RowRefusal(line, link))
        else:
            links.append(link)
            linked_rows.append((line, row))
    keys = [(pool_id, member.variant_gid) for pool_id, member in links]
    refused += [
        RowRefusal(line, repeated_message("variant_gid" if row.variant_gid else "sku", _variant_name(row)))
        for line, row in repeated(linked_rows, keys)
    ]
    if refused:
        raise nothing_imported(refused)
    linked = await pools.find_links(tx, caller.tenant, {pool_id for pool_id, _ in links})
    links = [(pool_id, _new_fields(member, linked.get((pool_id, member.variant_gid)))) for pool_id, member in links]
    report = [
        _member_result(line, row, member, linked.get((pool_id, member.variant_gid)))
        for (line, row), (pool_id, member) in zip(linked_rows, links, strict=True)
    ]
    changed = [link for link, done in zip(links, report, strict=True) if done.outcome != "unchanged"]
    return await apply(
        tx, caller, command, report, lambda version: pools.link_many(tx, caller.tenant, version, changed)
    )


def _link(
    row: MemberRow, known: KnownPools, gids_by_sku: Mapping[str, Sequence[str]]
) -> tuple[int, MemberFields] | Message:
    """Return the pool and the member of a row, or why the row is refused."""
    if conflict := known.conflict(row.pool, row.pool_id):
        return conflict
    pool = known.pool(row.pool, row.pool_id)
    if pool is None:
        return sheet.column_message("pool", message("no pool is named %(name)s", name=row.pool))
    member = MemberFields(row.variant_gid or "", row.units_per_sale, row.sku, row.title)
    if row.variant_gid:
        return pool.id, member
    if not row.sku:
        return sheet.column_message("variant_gid", message("name a variant by its variant_gid, or by its sku"))
    gids = gids_by_sku.get(row.sku, ())
    if not gids:
        return sheet.column_message("sku", message("no variant has the SKU %(sku)s", sku=row.sku))
    if len(gids) > 1:
        return sheet.column_message(
            "sku", message("several variants have the SKU %(sku)s: name one by its variant_gid", sku=row.sku)
        )
    # The SKU has found the variant, so the variant has it already.
    return pool.id, replace(member, variant_gid=gids[0], sku=None)


def _variant_name(row: MemberRow) -> str:
    return row.variant_gid or row.sku or ""


def _new_fields(member: MemberFields, present: MemberFields | None) -> MemberFields:
    """Return the new fields of a row: names that an export has from the platform are not stored."""
    if present is None:
        return member
    sku = None if member.sku == present.sku else member.sku
    title = None if member.title == present.title else member.title
    return MemberFields(member.variant_gid, member.units_per_sale, sku, title)


def _member_result(line: int, row: MemberRow, member: MemberFields, present: MemberFields | None) -> Row:
    name = f"{_variant_name(row)} in {row.pool}"
    columns = ("units_per_sale", "sku", "title")
    changes = cell_changes(member, {column: getattr(present, column, None) for column in columns})
    if present is None:
        return Row(line, "created", name, changes)
    return Row(line, "updated" if changes else "unchanged", name, changes)
