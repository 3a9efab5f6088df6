"""Arguments of the operations of the inventory service that are no tools, for the tests of plans.

Their statements should find rows: pools 1 and 2 have variants and a long history.
"""

from typing import Any

from tests.helpers.inventory_service import SINGLE
from tests.plans.common_arguments import account_arguments, webhook_arguments

OTHER_ARGUMENTS: dict[str, dict[str, Any]] = {
    **webhook_arguments("stock.low", 2),
    "list_actors": {"entry_ids": [1, 2]},
    "get_pool_history": {"pool_id": 1},
    "get_pool_figures": {"pool_ids": [1, 2]},
    "list_unsynced_pools": {"query": "lids"},
    "suggest_pools": {},
    "begin_replay": {},
    "get_replay": {},
    "import_products": {},
    "get_entry": {"pool_id": 1, "entry_id": 1},
    "get_undo_status": {"entry_ids": [1, 2]},
    "list_shop_agent_actions": {"limit": 20, "before": 40_000},
    "list_units_per_sale": {"entries": [(1, 1, SINGLE, 1, "2030-01-01T00:00:00Z")]},
    "name_variants": {"gids": [SINGLE]},
    "find_source_pools": {"gids": [SINGLE]},
    "keep_platform_number": {"pool_id": 1, "delta": 6},
    "is_shop_connected": {},
    "get_low_stock_mails": {},
    "set_low_stock_mails": {"enabled": True, "language": "de"},
    "show_access": {},
    "renew_key": {"scopes": ["read_pools"]},
    "end_key": {},
    "name_keys": {"key_ids": [1, 2]},
    "list_agent_limits": {},
    "get_agent_limit": {"key_id": 1},
    "set_agent_limit": {"key_id": 1, "daily_limit": 1_000_000},
    **account_arguments("merchant7@example.com", 1007),
}
