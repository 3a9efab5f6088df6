import asyncio
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def sell(sku: str, order: str) -> None:
    headers = {"Authorization": f"Bearer {os.environ['SHOP_KEY']}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(os.environ["INVENTORY"] + "/mcp", http_client=http)) as agent,
    ):

        async def call(tool: str, **arguments: object) -> dict:
            result = await agent.call_tool(tool, arguments)
            return json.loads(result.content[0].text) if result.is_error else result.structured_content

        for variant in (await call("find_variant", sku=sku)).get("variants", []):
            print(variant["title"], "can be sold:", variant["effective"])
            sale = {"variant_gid": variant["gid"], "quantity": 1, "order_reference": order}
            sold = await call("record_sale", **sale, idempotency_key=f"sale-{order}")
            for pool in sold.get("pools", []):
                print(pool["name"], "left:", pool["available"])
            if "code" in sold:
                print("Not recorded:", sold["message"])


asyncio.run(sell(*sys.argv[1:]))
