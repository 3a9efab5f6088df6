"""Tokens of two processes that serve different addresses of one database."""

from pathlib import Path

import httpx2

from holdfast.inventory.service import INVENTORY
from holdfast.inventory.settings import Settings
from holdfast.inventory.shops import operations as shops
from tests.helpers.processes import running_processes

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


async def test_processes_without_a_base_address_accept_each_others_tokens(
    inventory_url: str, settings: Settings, tmp_path: Path
) -> None:
    _, key = await INVENTORY.transact(settings, lambda tx: shops.add(tx, "busy.myshopify.com"))
    with running_processes(inventory_url, tmp_path, 2, service="inventory") as (one, other):
        async with httpx2.AsyncClient(timeout=30) as http:
            agent = {"type": "service_auth", "api_key": key}
            identity = (await http.post(f"{one.url}/api/agent/identity", json=agent)).json()
            grant = {
                "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
                "assertion": identity["identity_assertion"],
            }
            exchanged = await http.post(f"{other.url}/oauth/token", data=grant)
            answers = [
                await http.post(f"{process.url}/mcp", json=LIST, headers={"Authorization": f"Bearer {credential}"})
                for process in (one, other)
                for credential in (identity["identity_assertion"], exchanged.json()["access_token"])
            ]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 200]
