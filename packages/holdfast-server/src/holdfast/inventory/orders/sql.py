"""Statements on orders."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from holdfast.inventory.orders.model import OrderEffect, StoredLine, StoredOrder
from holdfast.inventory.resources import Reader, Tx


async def find_orders(reader: Reader, shop_id: int, ids: Collection[int]) -> dict[int, StoredOrder]:
    """The orders of a list that are stored."""
    rows = await reader.tuples(
        """
        select orders.id, updated_at, revision,
               coalesce(json_agg(json_build_array(line.id, variant_gid, taken, draws, returned))
                        filter (where line.id is not null), '[]')
          from orders
          left join lateral (
               select id, variant_gid, taken, returned,
                      (select coalesce(json_object_agg(pool_id, units_per_sale), '{}') from order_draws
                        where order_draws.shop_id = orders.shop_id and order_draws.order_id = orders.id
                          and line_id = order_lines.id) as draws
                 from order_lines where shop_id = orders.shop_id and order_id = orders.id) as line on true
         where shop_id = %(shop_id)s and orders.id = any(%(ids)s)
         group by orders.id, updated_at, revision
        """,
        {"shop_id": shop_id, "ids": [*ids]},
    )
    return {
        id: StoredOrder(
            updated_at,
            revision,
            {
                line_id: StoredLine(
                    gid, ordered_units, {int(pool_id): units for pool_id, units in units_by_pool.items()}, returned
                )
                for line_id, gid, ordered_units, units_by_pool, returned in lines
            },
        )
        for id, updated_at, revision, lines in rows
    }


async def stored_revision(reader: Reader, shop_id: int, id: int) -> int:
    """The revision of a stored order; 0 if it is not stored."""
    revision = await reader.value(
        "select revision from orders where shop_id = %(shop_id)s and id = %(id)s", {"shop_id": shop_id, "id": id}
    )
    return revision or 0


async def find_ever_linked(reader: Reader, shop_id: int, variant_gids: Collection[str]) -> set[str]:
    """The variants of a list that draw on a pool, or did once."""
    rows = await reader.tuples(
        "select distinct variant_gid from links where shop_id = %(shop_id)s and variant_gid = any(%(gids)s)",
        {"shop_id": shop_id, "gids": [*variant_gids]},
    )
    return {gid for (gid,) in rows}


async def caught_up_until(reader: Reader, shop_id: int) -> datetime | None:
    """Until when all changes are applied, at first the first link; None: nothing was ever linked."""
    return await reader.value(
        """
        select coalesce((select until from order_catches where shop_id = %(shop_id)s),
                        (select min(since) from links where shop_id = %(shop_id)s))
        """,
        {"shop_id": shop_id},
    )


async def store_caught_up(tx: Tx, shop_id: int, until: datetime) -> None:
    """Store that all changes of orders until then are applied."""
    await tx.run(
        """
        insert into order_catches (shop_id, until) values (%(shop_id)s, %(until)s)
            on conflict (shop_id) do update set until = greatest(order_catches.until, excluded.until)
        """,
        {"shop_id": shop_id, "until": until},
    )


async def find_units_by_variant(
    reader: Reader, shop_id: int, moments: Mapping[int, datetime], variants: Sequence[tuple[int, str]]
) -> dict[int, dict[str, dict[int, int]]]:
    """The pools that variants drew on when orders were placed, with the units of each, by order and variant.

    moments     when each order was placed
    variants    each order with each of its variants
    """
    rows = await reader.tuples(
        """
        select line.order_id, links.variant_gid, pool_id, units_per_sale
          from unnest(%(order_ids)s::bigint[], %(moments)s::timestamptz[], %(gids)s::text[])
                   as line (order_id, placed_at, variant_gid)
          join links on links.shop_id = %(shop_id)s and links.variant_gid = line.variant_gid
                    and since <= placed_at and placed_at < until
        """,
        {
            "shop_id": shop_id,
            "order_ids": [order_id for order_id, _ in variants],
            "moments": [moments[order_id] for order_id, _ in variants],
            "gids": [gid for _, gid in variants],
        },
    )
    units_by_order: dict[int, dict[str, dict[int, int]]] = {}
    for order_id, gid, pool_id, units in rows:
        units_by_order.setdefault(order_id, {}).setdefault(gid, {})[pool_id] = units
    return units_by_order


async def save_orders(tx: Tx, shop_id: int, effects: Sequence[OrderEffect]) -> None:
    """Store the last version of orders. An order may come several times; its last effect is the newest."""
    newest = {effect.order.id: effect.order for effect in effects}
    lines = {
        (effect.order.id, id): [effect.order.id, id, line.variant_gid, line.taken, line.units_by_pool, line.returned]
        for effect in effects
        for id, line in effect.lines.items()
    }
    await tx.run(
        """
        with changed_order as (
            select * from json_to_recordset(%(orders)s) as changed_order (
                id bigint, placed_at timestamptz, updated_at timestamptz)),
        saved_order as (
            insert into orders (shop_id, id, placed_at, updated_at)
            select %(shop_id)s, id, placed_at, updated_at from changed_order
                on conflict (shop_id, id) do update
               set updated_at = excluded.updated_at, revision = orders.revision + 1),
        order_line as (
            select (line ->> 0)::bigint as order_id, (line ->> 1)::bigint as id, line ->> 2 as variant_gid,
                   (line ->> 3)::bigint as taken, line -> 4 as draws, (line ->> 5)::bigint as returned
              from json_array_elements(%(lines)s) as line),
        saved_lines as (
            insert into order_lines (shop_id, order_id, id, variant_gid, taken, returned)
            select %(shop_id)s, order_id, id, variant_gid, taken, returned from order_line
                on conflict (shop_id, order_id, id) do update
               set taken = excluded.taken, returned = excluded.returned)
        insert into order_draws (shop_id, order_id, line_id, pool_id, units_per_sale)
        select %(shop_id)s, order_id, id, draw.key::bigint, draw.value::bigint
          from order_line cross join lateral json_each_text(draws) as draw
            on conflict do nothing
        """,
        {
            "shop_id": shop_id,
            "orders": _json(
                [{"id": o.id, "placed_at": o.placed_at, "updated_at": o.updated_at} for o in newest.values()]
            ),
            "lines": _json([*lines.values()]),
        },
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
