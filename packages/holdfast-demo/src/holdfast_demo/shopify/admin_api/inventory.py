"""Levels in the Admin API: idempotency keys, groups of changes, and items at further locations."""

import json
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any

from graphql.execution.values import get_directive_values

from holdfast_demo.shopify import shops
from holdfast_demo.shopify.admin_api.connections import Fields, Info, field, lazy
from holdfast_demo.shopify.admin_api.views import Views
from holdfast_demo.shopify.errors import ShopifyRefusal, UserErrors, graphql_error, user_error
from holdfast_demo.shopify.model import Adjustment, format_time, parse_gid
from holdfast_demo.shopify.platform_state import PlatformState

TABLES = """
create table if not exists keys (
    shop text not null, key text not null, asked text not null, at real not null, answer text, primary key (shop, key)
);
"""

KEY_SECONDS = 24 * 3600
"""Seconds after which a key can be used again."""

Action = Callable[[], Fields]


class MutationKeys:
    """Idempotency keys: a mutation runs once for each key."""

    def __init__(self, platform: PlatformState) -> None:
        self._platform = platform
        self._db = platform.store.db
        self._db.executescript(TABLES)

    def once(self, shop: str, info: Info, arguments: Fields, action: Action) -> Fields:
        """Run a mutation, or return the stored answer of its key. Raises `UserErrors` and `GraphQLError`."""
        key = _key(info)
        fingerprint = sha256(json.dumps([info.field_name, arguments], sort_keys=True).encode()).hexdigest()
        self._db.execute("delete from keys where at <= ?", (self._platform.now() - KEY_SECONDS,))
        row = self._db.execute("select asked, answer from keys where shop = ? and key = ?", (shop, key)).fetchone()
        if row and row[0] != fingerprint:
            message = "The same idempotency key cannot be used with different operation parameters."
            raise UserErrors(user_error(message, "IDEMPOTENCY_KEY_PARAMETER_MISMATCH"))
        if row and row[1] is None:
            message = "A previous request with this idempotency key failed. Retry with a new idempotency key."
            raise UserErrors(user_error(message, "IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED"))
        if row:
            return json.loads(row[1])
        try:
            with self._platform.happening():
                answer = action()
                self._store_answer(shop, key, fingerprint, json.dumps(answer))
        except UserErrors:
            self._store_answer(shop, key, fingerprint, None)
            raise
        return answer

    def _store_answer(self, shop: str, key: str, fingerprint: str, answer: str | None) -> None:
        values = (shop, key, fingerprint, self._platform.now(), answer)
        self._db.execute("insert into keys (shop, key, asked, at, answer) values (?, ?, ?, ?, ?)", values)


def _key(info: Info) -> str:
    directive = info.schema.get_directive("idempotent")
    assert directive is not None
    values = get_directive_values(directive, info.field_nodes[0], info.variable_values)
    if values is None:
        raise graphql_error(
            "The @idempotent directive is required for this mutation but was not provided.", "BAD_REQUEST"
        )
    key = str(values["key"])
    if not key.strip():
        raise graphql_error("The idempotency key cannot be an empty string or whitespace only.", "BAD_REQUEST")
    return key


def group_view(platform: PlatformState, views: Views, id: int | None) -> Fields | None:
    """A group of changes as the Admin API shows it."""
    group = platform.store.find(Adjustment, views.domain, id)
    if group is None:
        return None

    def changes(
        _: Info,
        quantityNames: list[str] | None = None,  # noqa: N803 - the name of the schema
        inventoryItemIds: list[str] | None = None,  # noqa: N803
        locationIds: list[str] | None = None,  # noqa: N803
    ) -> list[Fields]:
        return [
            {
                "name": name,
                "delta": delta,
                "quantityAfterChange": after,
                "ledgerDocumentUri": None,
                "item": lazy(partial(views.item_with, item)),
                "location": field(partial(_location, views, location)),
            }
            for item, location, name, delta, after in group.changes
            if quantityNames is None or name in quantityNames
            if inventoryItemIds is None or item in {parse_gid(gid, "InventoryItem") for gid in inventoryItemIds}
            if locationIds is None or location in {parse_gid(gid, "Location") for gid in locationIds}
        ]

    app = platform.app
    return {
        "__typename": group.kind,
        "id": group.gid,
        "createdAt": format_time(group.created),
        "reason": group.reason,
        "referenceDocumentUri": group.document,
        "app": {"__typename": "App", "id": app.gid, "title": app.title, "handle": app.handle, "apiKey": app.client_id},
        "changes": changes,
    }


def _location(views: Views, id: int, info: Info, _: Fields) -> Fields | None:
    return views.location_with(info, id)


def activate(platform: PlatformState, views: Views, arguments: Any) -> Fields:
    """Stock an item at a location. Raises `UserErrors`."""
    item = shops.find_item(platform, views.domain, parse_gid(arguments["inventoryItemId"], "InventoryItem"))
    location = parse_gid(arguments["locationId"], "Location")
    if item is None:
        raise UserErrors(user_error("The inventory item could not be found.", None, "inventoryItemId"))
    available = arguments.get("available")
    if available is not None and available < 0:
        raise UserErrors(user_error("The quantity can't be negative.", None, "available"))
    try:
        level = platform.levels.find(views.domain, item.item, location or 0)
        level = level or shops.stock(platform, views.domain, item.item, location or 0, available or 0)
    except ShopifyRefusal as refusal:
        raise UserErrors(user_error(str(refusal), None, "locationId")) from refusal
    return {"level": level.id}
