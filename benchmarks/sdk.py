"""The peer of the agent endpoint: the official SDK's low-level server, stateless, with a tool that does nothing."""

import contextlib
import socket
from collections.abc import AsyncGenerator
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"pool_id": {"type": "integer"}}}


async def list_tools(*_: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="get_pool", input_schema=SCHEMA)])


async def call_tool(*_: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text="{}")], structured_content={})


server = Server(
    "peer",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    get_tool_input_schema={"get_pool": SCHEMA}.get,
)
manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)


@contextlib.asynccontextmanager
async def lifespan(_: Starlette) -> AsyncGenerator[None]:
    async with manager.run():
        yield


class SdkServer:
    """The endpoint, and nothing beside it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await manager.handle_request(scope, receive, send)


app = Starlette(routes=[Route("/mcp", SdkServer())], lifespan=lifespan)

if __name__ == "__main__":
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(2048)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run([listener])
