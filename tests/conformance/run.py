"""Hold an agent endpoint to the protocol: the official conformance suite, and the official Inspector as a client.

python -m tests.conformance.run [--help]
"""

import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.conformance import authorization
from tests.conformance.targets import TARGETS
from tests.helpers import node as packages
from tests.helpers.serving import bind_port, serve_app

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGES = ROOT / "conformance"
"""Which packages for Node are needed, and the lock file that they are installed from."""

CACHE = ROOT / ".venv" / "conformance"
"""Where they are kept, beside the environment for Python."""

SUITE = "@modelcontextprotocol/conformance/dist/index.js"
INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"

NAMES = ", ".join(TARGETS)
ERAS = {"2025-11-25": "legacy", "2026-07-28": "modern"}
"""The revisions of the protocol, and what the Inspector calls their eras."""

say = Console().print
_COLOUR = re.compile("\x1b\\[[0-9;]*m")


def main(
    targets: Annotated[list[str] | None, typer.Argument(help=f"Services to test; all without it: {NAMES}.")] = None,
    revision: Annotated[list[str] | None, typer.Option(help="Revisions of the protocol; all without it.")] = None,
    scenario: Annotated[str | None, typer.Option(help="One scenario, told at length.")] = None,
) -> None:
    """Run the conformance suite; exit with 1 when anything is not as `expected-TARGET-REVISION.yml` says."""
    if unknown := {*(targets or ())} - TARGETS.keys() | {*(revision or ())} - {*ERAS}:
        raise typer.BadParameter(f"unknown: {', '.join(sorted(unknown))}")
    install()
    outcomes = [asyncio.run(conforms(target, revision or [*ERAS], scenario)) for target in targets or TARGETS]
    if "events" in (targets or TARGETS) and not scenario:
        outcomes.append(asyncio.run(inspector_connects(revision or [*ERAS])))
    sys.exit(0 if all(outcomes) else 1)


def install() -> None:
    """Install the packages for Node, when the lock file is not the one they were installed from."""
    if packages.is_installed(PACKAGES, CACHE):
        return
    say(f"Installing the conformance suite in {CACHE.relative_to(ROOT)}")
    try:
        packages.install(PACKAGES, CACHE)
    except packages.NotInstalled as error:
        sys.exit(str(error))


async def conforms(target: str, revisions: Sequence[str], scenario: str | None) -> bool:
    """Whether a service answers as the protocol wants in these revisions."""
    port = bind_port()
    # The suite tries out origins of localhost, and calls by that name.
    url = f"http://localhost:{port.getsockname()[1]}"
    async with TARGETS[target](url) as (app, key), serve_app(Authorized(app, key), port):
        outcomes = [await suite(f"{url}/mcp", target, revision, scenario) for revision in revisions]
        outcomes += [await inspector(f"{url}/mcp", key, revision) for revision in revisions if not scenario]
    return all(outcomes)


class Authorized:
    """Sends a key along with every request, which the suite itself cannot."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._header = (b"authorization", f"Bearer {key}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], self._header]}
        await self._app(scope, receive, send)


async def suite(url: str, target: str, revision: str, scenario: str | None) -> bool:
    """The scenarios that a revision requires."""
    command = [SUITE, "server", "--url", url]
    if scenario:
        status, text = await node(*command, "--spec-version", revision, "--scenario", scenario, "--verbose")
        say(text, markup=False)
        return status == 0
    expected = HERE / f"expected-{target}-{revision}.yml"
    status, text = await node(*command, "--requirements", revision, "--expected-failures", str(expected))
    show(f"{target}, {revision}", text)
    return status == 0


async def inspector_connects(revisions: Sequence[str]) -> bool:
    """Whether the events service is an authorization server as the protocol wants, and the Inspector connects to it."""
    outcomes: list[int] = []
    async with authorization.authorization_scene() as scene:
        for revision in revisions:
            status, text = await authorization.suite(scene, CACHE / "node_modules" / SUITE, revision)
            show(f"events as an authorization server, {revision}", text)
            outcomes.append(status)
        status, text = await authorization.inspector(scene, CACHE / "node_modules" / INSPECTOR)
        say(f"Inspector, connected by a click: {'fine' if status == 0 else text}", markup=False)
    return not any([*outcomes, status])


def show(title: str, text: str) -> None:
    """Show what the suite printed, as a table."""
    table = Table(title=title, title_justify="left")
    for heading in ("scenario", "passed", "failed"):
        table.add_column(heading, justify="left" if heading == "scenario" else "right")
    for name, passed, failed in re.findall(r"^[✓✗~] ([\w-]+): (\d+) passed, (\d+) failed", text, re.MULTILINE):
        table.add_row(name, passed, failed)
    say(table)
    say(_COLOUR.sub("", text[text.rfind("\nTotal: ") :]).strip(), markup=False)


async def inspector(url: str, key: str, revision: str) -> bool:
    """The Inspector lists tools and resources, as a client of either era."""
    command = [INSPECTOR, "--cli", url, "--transport", "http"]
    command += ["--protocol-era", ERAS[revision], "--header", f"Authorization: Bearer {key}", "--stored-auth-only"]
    fine = True
    for method in ("tools/list", "resources/list"):
        status, text = await node(*command, "--method", method, "--format", "json")
        say(f"Inspector, {revision}, {method}: {'fine' if status == 0 else text}", markup=False)
        fine = fine and status == 0
    return fine


async def node(package: str, *arguments: str) -> tuple[int, str]:
    """Run a program of the packages; its exit status and what it printed."""
    done = await asyncio.to_thread(packages.node, CACHE, CACHE / "node_modules" / package, *arguments)
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    typer.run(main)
