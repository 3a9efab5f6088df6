"""Arguments that every tool accepts, on a shop prepared for them."""

from typing import Any

from tests.helpers.inventory_service import SINGLE, SIX_PACK, Inventory, Shop

ARGUMENTS: dict[str, dict[str, Any]] = {
    "list_pools": {},
    "get_pool": {"pool_id": 1},
    "find_variant": {"gid": SINGLE},
    "create_pool": {"name": "Corks", "quantity": 1},
    "update_pool": {"pool_id": 1, "name": "Honey"},
    "pause_pool": {"pool_id": 1},
    "resume_pool": {"pool_id": 1},
    "archive_pool": {"pool_id": 1},
    "restore_pool": {"pool_id": 3},
    "link_variants": {"pool_id": 1, "members": [{"variant_gid": SIX_PACK, "units_per_sale": 1}]},
    "update_member": {"pool_id": 1, "variant_gid": SINGLE, "units_per_sale": 2},
    "unlink_variants": {"pool_id": 1, "variant_gids": [SINGLE]},
    "get_availability": {"variant_gids": [SINGLE]},
    "explain_availability": {"variant_gid": SINGLE},
    "simulate_sale": {"lines": [{"variant_gid": SINGLE, "quantity": 1}]},
    "list_low_stock": {"threshold": 10**6},
    "get_stock_history": {},
    "get_stock_at": {"pool_id": 1, "at": "2100-01-01T00:00:00Z"},
    "set_pool_quantity": {"pool_id": 1, "quantity": 0},
    "adjust_pool_quantity": {"pool_id": 1, "delta": -1},
    "bulk_adjust": {"items": [{"pool_id": 1, "delta": -1}]},
    "transfer_quantity": {"from_pool_id": 1, "to_pool_id": 2, "quantity": 1},
    "hold_quantity": {"pool_id": 1, "quantity": 1},
    "list_holds": {},
    "release_hold": {"hold_id": 3},
    "record_sale": {"pool_id": 2, "quantity": 1, "hold_id": 3},
    "revert_entry": {"entry_id": 1},
    "search_variants": {"query": "honey"},
    "get_sync_status": {},
    "get_drift": {"pool_id": 1},
    "reconcile": {"pool_id": 1},
    "resync": {"pool_id": 1},
    "export_csv": {"kind": "members"},
    "import_csv": {"kind": "pools", "text": "name,quantity\nHoney jars,7\n", "dry_run": False},
    "list_webhooks": {},
    "set_webhook": {"url": "https://shop.example.com/webhooks"},
}


async def prepare_shop(inventory: Inventory, *scopes: str) -> Shop:
    """A shop in which all of them are accepted: pools 1 and 2, pool 3 archived, entries 1 and 2, hold 3."""
    shop = await inventory.create_shop()
    await shop.create_golden_pool()
    await shop.create_pool(9, name="Lids")
    await shop.create_pool(0, name="Old")
    await shop.call("archive_pool", pool_id=3)
    await shop.call("hold_quantity", pool_id=2, quantity=5, reference="cart 7")
    if scopes:
        await inventory.regenerate_key(shop, *scopes)
    return shop
