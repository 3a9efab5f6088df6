"""Setting levels through the Admin API: compared, once for each key, all or none."""

import json
import re
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any

from graphql.execution.values import get_directive_values

from holdfast.inventory.shopify.double import shops
from holdfast.inventory.shopify.double.connections import Info, View, field, lazy
from holdfast.inventory.shopify.double.errors import Refused, UserErrors, failed, user_error
from holdfast.inventory.shopify.double.model import Adjustment, Location, moment, number
from holdfast.inventory.shopify.double.queries import bounded
from holdfast.inventory.shopify.double.views import Views
from holdfast.inventory.shopify.double.world import World

TABLES = """
create table if not exists keys (
    shop text not null, key text not null, asked text not null, at real not null, answer text, primary key (shop, key)
);
"""

KEPT = 24 * 3600
"""Seconds after which a key can be used again."""

REASONS = frozenset(
    "correction cycle_count_available damaged movement_canceled movement_created movement_received movement_updated"
    " other promotion quality_control received reservation_created reservation_deleted reservation_updated restock"
    " safety_stock shrinkage".split()
)

_DOCUMENT = re.compile(r"gid://[\w.-]+/[\w.-]+/[^\s/]+|(?!gid:)[a-z][a-z0-9+.-]*://\S+")

Act = Callable[[], View]


class Keys:
    """Keys by which a mutation is done once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._db = world.store.db
        self._db.executescript(TABLES)

    def once(self, shop: str, info: Info, given: View, act: Act) -> View:
        """Do what a key is given for, or answer as before. Raises `UserErrors` and `GraphQLError`."""
        key = _key(info)
        asked = sha256(json.dumps([info.field_name, given], sort_keys=True).encode()).hexdigest()
        self._db.execute("delete from keys where at <= ?", (self._world.now() - KEPT,))
        row = self._db.execute("select asked, answer from keys where shop = ? and key = ?", (shop, key)).fetchone()
        if row and row[0] != asked:
            message = "The same idempotency key cannot be used with different operation parameters."
            raise UserErrors(user_error(message, "IDEMPOTENCY_KEY_PARAMETER_MISMATCH"))
        if row and row[1] is None:
            message = "A previous request with this idempotency key failed. Retry with a new idempotency key."
            raise UserErrors(user_error(message, "IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED"))
        if row:
            return json.loads(row[1])
        try:
            with self._world.happening():
                answer = act()
                self._keep(shop, key, asked, json.dumps(answer))
        except UserErrors:
            self._keep(shop, key, asked, None)
            raise
        return answer

    def _keep(self, shop: str, key: str, asked: str, answer: str | None) -> None:
        values = (shop, key, asked, self._world.now(), answer)
        self._db.execute("insert into keys (shop, key, asked, at, answer) values (?, ?, ?, ?, ?)", values)


def _key(info: Info) -> str:
    directive = info.schema.get_directive("idempotent")
    assert directive is not None
    values = get_directive_values(directive, info.field_nodes[0], info.variable_values)
    if values is None:
        raise failed("The @idempotent directive is required for this mutation but was not provided.", "BAD_REQUEST")
    key = str(values["key"])
    if not key.strip():
        raise failed("The idempotency key cannot be an empty string or whitespace only.", "BAD_REQUEST")
    return key


def set_quantities(world: World, views: Views, given: View) -> View:
    """Set levels, all or none: the id of the group of changes, if there were any. Raises `UserErrors`."""
    quantities: list[View] = given["quantities"]
    errors = _refused(world, views, given, quantities)
    if errors:
        raise UserErrors(*errors)
    changes: list[tuple[int, int, str, int, int]] = []
    for each in quantities:
        item, location = number(each["inventoryItemId"], "InventoryItem"), number(each["locationId"], "Location")
        assert item is not None
        assert location is not None
        level = world.levels.find(views.domain, item, location)
        assert level is not None
        delta = each["quantity"] - (level.available if given["name"] == "available" else level.on_hand)
        if delta:
            moved = shops.move(world, views.domain, item, location, available=delta)
            changes.append((item, location, "available", delta, moved.available))
            changes.append((item, location, "on_hand", delta, moved.on_hand))
    if not changes:
        return {"group": None}
    now = world.now()
    group = Adjustment(
        reason=given["reason"], document=given.get("referenceDocumentUri"), changes=changes, created=now, updated=now
    )
    return {"group": world.store.put(views.domain, group).id}


def check(info: Info, given: View) -> None:
    """Raises `GraphQLError` for what is not even looked at."""
    bounded(info, "input.quantities", given["quantities"])
    for place, each in enumerate(given["quantities"]):
        if "changeFromQuantity" not in each:
            message = f"quantities.{place} must include changeFromQuantity; null skips the comparison."
            raise failed(message, "INVALID_FIELD_ARGUMENTS")


def _refused(world: World, views: Views, given: View, quantities: list[View]) -> list[View]:
    errors: list[View] = []
    if given["name"] not in {"available", "on_hand"}:
        message = "The quantity name must be either 'available' or 'on_hand'."
        errors.append(user_error(message, "INVALID_NAME", "input", "name"))
    if given["reason"] not in REASONS:
        errors.append(user_error("The specified reason is invalid.", "INVALID_REASON", "input", "reason"))
    document = given.get("referenceDocumentUri")
    if document is not None and not _DOCUMENT.fullmatch(document):
        message = "The specified reference document is invalid."
        errors.append(user_error(message, "INVALID_REFERENCE_DOCUMENT", "input", "referenceDocumentUri"))
    seen: set[tuple[str, str]] = set()
    for place, each in enumerate(quantities):
        pair = (each["inventoryItemId"], each["locationId"])
        if pair in seen:
            message = "The combination of inventoryItemId and locationId must be unique."
            errors.append(_at(place, "", message, "NO_DUPLICATE_INVENTORY_ITEM_ID_GROUP_ID_PAIR"))
        seen.add(pair)
        if not errors or errors[-1]["field"] is None or errors[-1]["field"][2:3] != [str(place)]:
            errors += _of_one(world, views, given["name"], place, each)
    return errors


def _of_one(world: World, views: Views, name: str, place: int, given: View) -> list[View]:
    item = shops.find_item(world, views.domain, number(given["inventoryItemId"], "InventoryItem"))
    location = world.store.find(Location, views.domain, number(given["locationId"], "Location"))
    if item is None:
        message = "The specified inventory item could not be found."
        return [_at(place, "inventoryItemId", message, "INVALID_INVENTORY_ITEM")]
    if location is None or not location.active:
        return [_at(place, "locationId", "The specified location could not be found.", "INVALID_LOCATION")]
    if item.bundle:
        message = "The specified inventory item is not allowed to be adjusted via API."
        return [_at(place, "inventoryItemId", message, "NON_MUTABLE_INVENTORY_ITEM")]
    level = world.levels.find(views.domain, item.item, location.id)
    if level is None:
        message = "The specified inventory item is not stocked at the location."
        return [_at(place, "locationId", message, None)]
    if given["quantity"] < 0:
        return [_at(place, "quantity", "The quantity can't be negative.", "INVALID_QUANTITY_NEGATIVE")]
    if given["quantity"] > shops.HIGHEST:
        message = "The total quantity can't be higher than 1,000,000,000."
        return [_at(place, "quantity", message, "INVALID_QUANTITY_TOO_HIGH")]
    present = level.available if name == "available" else level.on_hand
    if given["changeFromQuantity"] not in (None, present):
        message = "The changeFromQuantity value does not match persisted value."
        return [_at(place, "changeFromQuantity", message, "CHANGE_FROM_QUANTITY_STALE")]
    return []


def _at(place: int, name: str, message: str, code: str | None) -> View:
    return user_error(message, code, "input", "quantities", str(place), *([name] if name else []))


def shown_group(world: World, views: Views, id: int | None) -> View | None:
    """A group of changes as the Admin API shows it."""
    group = world.store.find(Adjustment, views.domain, id)
    if group is None:
        return None

    def changes(
        _: Info,
        quantityNames: list[str] | None = None,  # noqa: N803 - the name of the schema
        inventoryItemIds: list[str] | None = None,  # noqa: N803
        locationIds: list[str] | None = None,  # noqa: N803
    ) -> list[View]:
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
            if inventoryItemIds is None or item in {number(each, "InventoryItem") for each in inventoryItemIds}
            if locationIds is None or location in {number(each, "Location") for each in locationIds}
        ]

    app = world.app
    return {
        "__typename": group.kind,
        "id": group.gid,
        "createdAt": moment(group.created),
        "reason": group.reason,
        "referenceDocumentUri": group.document,
        "app": {"__typename": "App", "id": app.gid, "title": app.title, "handle": app.handle, "apiKey": app.client_id},
        "changes": changes,
    }


def _location(views: Views, id: int, info: Info, _: View) -> View | None:
    return views.location_with(info, id)


def activate(world: World, views: Views, given: Any) -> View:
    """Stock an item at a location. Raises `UserErrors`."""
    item = shops.find_item(world, views.domain, number(given["inventoryItemId"], "InventoryItem"))
    location = number(given["locationId"], "Location")
    if item is None:
        raise UserErrors(user_error("The inventory item could not be found.", None, "inventoryItemId"))
    available = given.get("available")
    if available is not None and available < 0:
        raise UserErrors(user_error("The quantity can't be negative.", None, "available"))
    try:
        level = world.levels.find(views.domain, item.item, location or 0)
        level = level or shops.stock(world, views.domain, item.item, location or 0, available or 0)
    except Refused as refused:
        raise UserErrors(user_error(str(refused), None, "locationId")) from refused
    return {"level": level.id}
