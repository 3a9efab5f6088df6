"""Metafields: values that the app keeps at a shop and at what it sells."""

import json
import re
from hashlib import sha256
from typing import Any

from holdfast_demo.shopify.admin_api.connections import Fields
from holdfast_demo.shopify.errors import UserErrors, user_error
from holdfast_demo.shopify.model import Metafield, Product, Shop, StoredRecord, Variant, gid, parse_gid
from holdfast_demo.shopify.platform_state import PlatformState, matching

MAX_METAFIELDS = 25
MAX_VALUE_BYTES = 65_536
TYPES = frozenset({"json", "single_line_text_field", "number_integer", "boolean"})
"""The types of metafields that the double knows."""


def find(platform: PlatformState, shop: str, owner: str, namespace: str | None, key: str) -> Metafield | None:
    """A metafield of an owner. In the namespace, `$app` stands for the app; so does no namespace."""
    fields = {"owner": owner, "namespace": _full_namespace(namespace), "key": key}
    where = matching(*((f"json_extract(body, '$.{name}') = ?", value) for name, value in fields.items()))
    rows = platform.store.select(Metafield, shop, where)
    return rows[0] if rows else None


def metafield_view(metafield: Metafield) -> Fields:
    """The fields that only metafields have."""
    return {
        "namespace": metafield.namespace,
        "key": metafield.key,
        "type": metafield.type,
        "value": metafield.value,
        "jsonValue": json.loads(metafield.value) if metafield.type == "json" else metafield.value,
        "compareDigest": _digest(metafield),
        "owner": {"__typename": metafield.owner.split("/")[3], "id": metafield.owner},
    }


def _digest(metafield: Metafield) -> str:
    return sha256(metafield.value.encode()).hexdigest()


def _full_namespace(namespace: str | None) -> str:
    name = namespace or "$app"
    if name == "$app":
        return "app--1"
    return f"app--1--{name.removeprefix('$app:')}" if name.startswith("$app:") else name


def write(platform: PlatformState, shop: Shop, entries: list[Fields]) -> list[Metafield]:
    """Write metafields, all or none. Raises `UserErrors`."""
    if len(entries) > MAX_METAFIELDS:
        message = f"Exceeded the maximum metafields input limit of {MAX_METAFIELDS}."
        raise UserErrors(_error(message, "LESS_THAN_OR_EQUAL_TO", None))
    return [_set(platform, shop, index, entry) for index, entry in enumerate(entries)]


def _set(platform: PlatformState, shop: Shop, index: int, entry: Fields) -> Metafield:
    owner, namespace, key = entry["ownerId"], _full_namespace(entry.get("namespace")), entry["key"]
    if not _is_owner(platform, shop, owner):
        raise UserErrors(_error("Owner does not exist.", "INVALID", index, "ownerId"))
    if not re.fullmatch(r"[A-Za-z0-9_-]{2,64}", key):
        raise UserErrors(_error("Key is invalid.", "INVALID", index, "key"))
    if not re.fullmatch(r"[A-Za-z0-9_-]{3,255}", namespace):
        raise UserErrors(_error("Namespace is invalid.", "INVALID", index, "namespace"))
    present = find(platform, shop.domain, owner, namespace, key)
    if "compareDigest" in entry:
        digest = _digest(present) if present else None
        if entry["compareDigest"] != digest:
            raise UserErrors(_error("The resource has been updated.", "STALE_OBJECT", index, "compareDigest"))
    type: Any = entry.get("type") or (present and present.type)
    if not type:
        raise UserErrors(_error("Type can't be blank", "BLANK", index, "type"))
    if type not in TYPES or (present and present.type != type):
        raise UserErrors(_error(f"Type can't be {type} here.", "INVALID_TYPE", index, "type"))
    if not _is_value(type, entry["value"]):
        raise UserErrors(_error(f"Value is no {type}, or is too long.", "INVALID_VALUE", index, "value"))
    now = platform.now()
    metafield = present or Metafield(owner=owner, namespace=namespace, key=key, type=type, value="", created=now)
    metafield.type, metafield.value, metafield.updated = type, entry["value"], now
    return platform.store.put(shop.domain, metafield)


def _is_value(type: str, value: str) -> bool:
    if len(value.encode()) > MAX_VALUE_BYTES:
        return False
    match type:
        case "json":
            try:
                json.loads(value)
            except ValueError:
                return False
            return True
        case "number_integer":
            return re.fullmatch(r"-?[0-9]{1,16}", value) is not None
        case "boolean":
            return value in {"true", "false"}
        case _:
            return value != "" and "\n" not in value


def _is_owner(platform: PlatformState, shop: Shop, owner: str) -> bool:
    if owner in (shop.gid, gid("AppInstallation", shop.id)):
        return True
    kinds: tuple[type[StoredRecord], ...] = (Product, Variant)
    return any(platform.store.find(kind, shop.domain, parse_gid(owner, kind.kind)) for kind in kinds)


def _error(message: str, code: str, index: int | None, name: str = "") -> Fields:
    field = ["metafields"] if index is None else ["metafields", str(index), name]
    return {**user_error(message, code, *field), "elementIndex": index}
