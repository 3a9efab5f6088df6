"""auth.md: its lines work as printed."""

import asyncio
import os
import re
import shutil
import socket
from pathlib import Path

import pytest
import uvicorn

from holdfast.inventory import discovery
from holdfast.inventory.service import INVENTORY
from tests.helpers.inventory_service import Inventory


@pytest.mark.skipif(shutil.which("curl") is None and "CI" not in os.environ, reason="needs curl")
async def test_an_agent_gets_from_nothing_to_a_tool_call_by_the_lines_of_auth_md(
    inventory: Inventory, tmp_path: Path
) -> None:
    key = (await inventory.create_shop()).key
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        served = inventory.settings.model_copy(update={"base_url": f"http://127.0.0.1:{listener.getsockname()[1]}"})
        app = INVENTORY.app(served, background=False)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None))
        running = asyncio.create_task(server.serve([listener]))
        try:
            lines = re.findall(r"```sh\n(.*?)```", discovery.auth(served.base_url), re.DOTALL)
            ran = await asyncio.create_subprocess_exec(
                *("bash", "-euo", "pipefail", "-c", "\n".join(lines).replace("<API_KEY>", key)),
                cwd=tmp_path,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, err = await asyncio.wait_for(ran.communicate(), 60)
        finally:
            server.should_exit = True
            await running

    assert err == b""
    assert b'"agent_auth"' in out
    assert b'"pools":[]' in out.rpartition(b"\n")[2]
