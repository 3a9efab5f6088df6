"""What agents are told of changes, as it is on the wire."""

from typing import Any

UPDATED = "notifications/resources/updated"
LISTED = "notifications/resources/list_changed"


def updated(uri: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": uri}}
