"""Changes of levels through the Admin API: to a quantity, or by a difference; all or none."""

import re
from typing import Any

from holdfast_demo.shopify import shops
from holdfast_demo.shopify.admin_api.connections import Fields, Info
from holdfast_demo.shopify.admin_api.queries import require_bounded
from holdfast_demo.shopify.admin_api.views import Views
from holdfast_demo.shopify.errors import UserErrors, graphql_error, user_error
from holdfast_demo.shopify.levels import Level
from holdfast_demo.shopify.model import Adjustment, Location, parse_gid
from holdfast_demo.shopify.platform_state import PlatformState

REASONS = frozenset(
    "correction cycle_count_available damaged movement_canceled movement_created movement_received movement_updated"
    " other promotion quality_control received reservation_created reservation_deleted reservation_updated restock"
    " safety_stock shrinkage".split()
)

MAX_ABSOLUTE_LEVEL = 2_000_000_000
"""The maximum distance from zero that differences can bring a level to."""

_DOCUMENT = re.compile(r"gid://[\w.-]+/[\w.-]+/[^\s/]+|(?!gid:)[a-z][a-z0-9+.-]*://\S+")


def check(info: Info, name: str, arguments: Fields) -> None:
    """Raises `GraphQLError` for input that is refused before its entries are checked.

    name    of the list in the input
    """
    require_bounded(info, f"input.{name}", arguments[name])
    for index, entry in enumerate(arguments[name]):
        if "changeFromQuantity" not in entry:
            message = f"{name}.{index} must include changeFromQuantity; null skips the comparison."
            raise graphql_error(message, "INVALID_FIELD_ARGUMENTS")


def set_quantities(platform: PlatformState, views: Views, arguments: Fields) -> Fields:
    """Set levels. Returns the id of the group of changes as `group`, None without changes. Raises `UserErrors`."""
    name = arguments["name"]
    errors: list[Fields] = []
    if name not in {"available", "on_hand"}:
        message = "The quantity name must be either 'available' or 'on_hand'."
        errors.append(user_error(message, "INVALID_NAME", "input", "name"))
    errors += _general_errors(arguments)
    seen_pairs: set[tuple[str, str]] = set()
    for index, entry in enumerate(arguments["quantities"]):
        pair = (entry["inventoryItemId"], entry["locationId"])
        if pair in seen_pairs:
            message = "The combination of inventoryItemId and locationId must be unique."
            code = "NO_DUPLICATE_INVENTORY_ITEM_ID_GROUP_ID_PAIR"
            errors.append(user_error(message, code, "input", "quantities", str(index)))
        else:
            errors += _set_errors(platform, views, name, index, entry)
        seen_pairs.add(pair)
    if errors:
        raise UserErrors(*errors)
    changes: list[tuple[int, int, str, int, int]] = []
    for entry in arguments["quantities"]:
        level = _level(platform, views, entry)
        assert level is not None
        changes += _move(platform, views, level, entry["quantity"] - _current(level, name))
    return _store_group(platform, views, arguments, changes)


def adjust_quantities(platform: PlatformState, views: Views, arguments: Fields) -> Fields:
    """Change levels by differences. Returns the id of the group of changes as `group`, None without changes.

    Raises `UserErrors`. Only the available quantity can be changed here; the platform allows further ones.
    """
    errors: list[Fields] = []
    if arguments["name"] != "available":
        message = "The specified quantity name is invalid."
        errors.append(user_error(message, "INVALID_QUANTITY_NAME", "input", "name"))
    errors += _general_errors(arguments)
    for index, entry in enumerate(arguments["changes"]):
        errors += _adjust_errors(platform, views, index, entry)
    if errors:
        raise UserErrors(*errors)
    changes: list[tuple[int, int, str, int, int]] = []
    for entry in arguments["changes"]:
        level = _level(platform, views, entry)
        assert level is not None
        changes += _move(platform, views, level, entry["delta"])
    return _store_group(platform, views, arguments, changes)


def _general_errors(arguments: Fields) -> list[Fields]:
    errors: list[Fields] = []
    if arguments["reason"] not in REASONS:
        errors.append(user_error("The specified reason is invalid.", "INVALID_REASON", "input", "reason"))
    document = arguments.get("referenceDocumentUri")
    if document is not None and not _DOCUMENT.fullmatch(document):
        message = "The specified reference document is invalid."
        errors.append(user_error(message, "INVALID_REFERENCE_DOCUMENT", "input", "referenceDocumentUri"))
    return errors


def _set_errors(platform: PlatformState, views: Views, name: str, index: int, entry: Fields) -> list[Fields]:
    at = ("input", "quantities", str(index))
    level = _level_or_errors(platform, views, entry, at)
    if isinstance(level, list):
        return level
    if entry["quantity"] < 0:
        return [user_error("The quantity can't be negative.", "INVALID_QUANTITY_NEGATIVE", *at, "quantity")]
    if entry["quantity"] > shops.MAX_QUANTITY:
        message = "The total quantity can't be higher than 1,000,000,000."
        return [user_error(message, "INVALID_QUANTITY_TOO_HIGH", *at, "quantity")]
    if entry["changeFromQuantity"] not in (None, _current(level, name)):
        message = "The changeFromQuantity value does not match persisted value."
        return [user_error(message, "CHANGE_FROM_QUANTITY_STALE", *at, "changeFromQuantity")]
    return []


def _adjust_errors(platform: PlatformState, views: Views, index: int, entry: Fields) -> list[Fields]:
    at = ("input", "changes", str(index))
    level = _level_or_errors(platform, views, entry, at)
    if isinstance(level, list):
        return level
    if entry.get("ledgerDocumentUri") is not None:
        message = "A ledger document URI is not allowed when adjusting available."
        return [user_error(message, "INVALID_AVAILABLE_DOCUMENT", *at, "ledgerDocumentUri")]
    if level.available + entry["delta"] > MAX_ABSOLUTE_LEVEL:
        message = "The quantity can't be higher than 2,000,000,000."
        return [user_error(message, "INVALID_QUANTITY_TOO_HIGH", *at, "delta")]
    if level.available + entry["delta"] < -MAX_ABSOLUTE_LEVEL:
        message = "The quantity can't be lower than -2,000,000,000."
        return [user_error(message, "INVALID_QUANTITY_TOO_LOW", *at, "delta")]
    if entry["changeFromQuantity"] not in (None, level.available):
        message = "The changeFromQuantity argument no longer matches the persisted quantity."
        return [user_error(message, "CHANGE_FROM_QUANTITY_STALE", *at, "changeFromQuantity")]
    return []


def _level_or_errors(platform: PlatformState, views: Views, entry: Fields, at: tuple[str, ...]) -> Level | list[Fields]:
    """The level to be changed, or the errors if there is none."""
    item = shops.find_item(platform, views.domain, parse_gid(entry["inventoryItemId"], "InventoryItem"))
    location = platform.store.find(Location, views.domain, parse_gid(entry["locationId"], "Location"))
    if item is None:
        message = "The specified inventory item could not be found."
        return [user_error(message, "INVALID_INVENTORY_ITEM", *at, "inventoryItemId")]
    if location is None or not location.active:
        return [user_error("The specified location could not be found.", "INVALID_LOCATION", *at, "locationId")]
    if item.bundle:
        message = "The specified inventory item is not allowed to be adjusted via API."
        return [user_error(message, "NON_MUTABLE_INVENTORY_ITEM", *at, "inventoryItemId")]
    level = platform.levels.find(views.domain, item.item, location.id)
    if level is None:
        message = "The specified inventory item is not stocked at the location."
        return [user_error(message, None, *at, "locationId")]
    return level


def _level(platform: PlatformState, views: Views, entry: Fields) -> Level | None:
    item, location = parse_gid(entry["inventoryItemId"], "InventoryItem"), parse_gid(entry["locationId"], "Location")
    return platform.levels.find(views.domain, item or 0, location or 0)


def _current(level: Level, name: str) -> int:
    return level.available if name == "available" else level.on_hand


def _move(platform: PlatformState, views: Views, level: Level, delta: int) -> list[tuple[int, int, str, int, int]]:
    """Change a level. Returns its changes: item, location, name, difference, quantity afterwards."""
    if not delta:
        return []
    new_level = shops.move(platform, views.domain, level.item, level.location, available=delta)
    return [
        (level.item, level.location, "available", delta, new_level.available),
        (level.item, level.location, "on_hand", delta, new_level.on_hand),
    ]


def _store_group(platform: PlatformState, views: Views, arguments: Fields, changes: Any) -> Fields:
    if not changes:
        return {"group": None}
    now = platform.now()
    document = arguments.get("referenceDocumentUri")
    group = Adjustment(reason=arguments["reason"], document=document, changes=changes, created=now, updated=now)
    return {"group": platform.store.put(views.domain, group).id}
