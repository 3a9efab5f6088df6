import asyncio
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def register(title: str, email: str) -> None:
    headers = {"Authorization": f"Bearer {os.environ['KEY']}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(os.environ["EVENTS"] + "/mcp", http_client=http)) as agent,
    ):

        async def call(tool: str, **arguments: object) -> dict:
            result = await agent.call_tool(tool, arguments)
            return json.loads(result.content[0].text) if result.is_error else result.structured_content

        events = (await call("list_events", limit=500))["data"]
        for event in (event for event in events if event["title"] == title and event["status"] != "cancelled"):
            outcome = await call("create_registration", event_id=event["id"], email=email)
            if "next" in outcome:
                person = {"event_id": event["id"], "user_id": outcome["next"]["url"].rpartition("/")[2]}
                while (outcome := await call("get_registration", **person)).get("code") == "registration_pending":
                    await asyncio.sleep(0.2)
            print(email, outcome.get("status") or outcome["message"])


asyncio.run(register(*sys.argv[1:]))
