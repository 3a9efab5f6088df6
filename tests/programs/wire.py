"""What the outside sees of both services, as files: to compare before and after a change of the code alone.

`python -m tests.programs.wire DIRECTORY` writes them. In another checkout, `python -m tests.programs.wire DIRECTORY
--other BEFORE` writes them too, prints each difference to the earlier ones, and fails if there is one.

For each service: each path with its methods, every answer to GET that is the same for all callers (documents, OpenAPI,
pages, files), the tools and resources of agents, the names of the metrics, and the schema. And the `--help` of each
command.
"""

import asyncio
import difflib
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.testing import CliRunner

from holdfast.cli import app
from tests.helpers.agents import STATELESS, Agent
from tests.helpers.data_directories import migrated_database, scratch_directory
from tests.helpers.routes import ServiceUnderTest, serve_all_routes
from tests.programs.schema import SERVICES, schema_of

HANDSHAKE = "2025-11-25"

CHANGING = re.compile(
    r"\b\d{4}-\d\d-\d\d(T[\d:.]+Z)?"  # dates and times
    r'|(?<=name="token" value=")[^"]+'  # tokens of forms
    r'|(?<="request_id":")\w+|(?<=request_id )\w+'
    r'|(?<="[nxy]":")[\w-]+|(?<="kid":")[\w-]+'  # public keys
)
"""What differs from run to run."""

Files = dict[str, str]


async def files_of(name: str, directory: Path, url: str) -> Files:
    """The files of a service, by their paths."""
    files: Files = {"schema.sql": schema_of(name, url)}
    async with serve_all_routes(name, {name: url}, directory) as service:
        files["paths.txt"] = await methods(service)
        files |= {f"get{path}.txt": text async for path, text in _public(service)}
        files |= await of_agents(service)
        files["metrics.txt"] = _metrics((await service.request("GET", "/metrics")).text)
    return {f"{name}/{path}": text for path, text in files.items()}


async def methods(service: ServiceUnderTest) -> str:
    """Each path with the methods that it answers."""
    lines: list[str] = []
    for path in service.paths:
        answer = await service.request("TRACE", path)
        allowed = answer.headers.get("allow", f"answers {answer.status_code}")
        lines.append(f"{path}  {', '.join(sorted(allowed.split(', ')))}\n")
    return "".join(lines)


async def _public(service: ServiceUnderTest) -> AsyncIterator[tuple[str, str]]:
    """Each public path, with the status, the headers and the text of its answer."""
    for path in service.paths:
        if "4711" in path or "stream" in path or path == "/metrics":
            continue
        for kind in ("application/json", "text/html"):
            answer = await service.request("GET", path, headers={"Accept": kind})
            if answer.status_code == 405:
                continue
            headers = "".join(f"{name}: {value}\n" for name, value in sorted(answer.headers.items()))
            text = f"{answer.status_code}\n{headers}\n{answer.text}\n"
            yield f"{'/index' if path == '/' else path}.{kind.rpartition('/')[2]}", CHANGING.sub("…", text)


async def of_agents(service: ServiceUnderTest) -> Files:
    """What an agent is told before its first call, in both eras of the protocol."""
    handshake = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}}
    listed: dict[str, dict[str, Any]] = {"tools/list": {}, "resources/list": {}, "resources/templates/list": {}}
    calls = [(HANDSHAKE, method, parameters) for method, parameters in {"initialize": handshake, **listed}.items()]
    calls += [(STATELESS, method, parameters) for method, parameters in {"server/discover": {}, **listed}.items()]
    files: Files = {}
    for version, method, parameters in calls:
        answer = await Agent(service.app, service.key, version).ask(method, parameters)
        text = json.dumps(answer.json(), indent=1, ensure_ascii=False)
        files[f"agents/{version}/{method.replace('/', '-')}.json"] = f"{answer.status_code}\n{text}\n"
    return files


def _metrics(text: str) -> str:
    """The names of metrics with their help, type and labels, without values."""
    lines = {re.sub(r'="[^"]*"', "", line.rpartition(" ")[0]) if line[:1] != "#" else line for line in text.split("\n")}
    return "\n".join(sorted(lines)) + "\n"


def explanations() -> Files:
    """The `--help` of each command and each group of commands."""
    return {
        f"help/{'-'.join(words) or 'holdfast'}.txt": CliRunner()
        .invoke(app, [*words, "--help"], terminal_width=80)
        .stdout
        for words in _commands(typer.main.get_command(app))
    }


def _commands(command: Any, *words: str) -> Iterator[tuple[str, ...]]:
    yield words
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, *words, name)


def write_all() -> Files:
    """All files, of both services in new databases."""
    databases = scratch_directory()
    files = explanations()
    for name, product in SERVICES.items():
        url = migrated_database(product, databases)
        with tempfile.TemporaryDirectory() as directory:
            files |= asyncio.run(files_of(name, Path(directory), url))
    return files


def differences(before: Files, after: Files) -> Iterator[str]:
    """The lines of a unified diff, file by file."""
    for path in sorted({*before, *after}):
        lines = [files.get(path, "").splitlines(keepends=True) for files in (before, after)]
        yield from difflib.unified_diff(lines[0], lines[1], f"before/{path}", f"after/{path}", n=1)


def read(directory: Path) -> Files:
    """The files that were written into a directory."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_text(encoding="utf-8") for path in files}


def write(files: Files, directory: Path) -> None:
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text, encoding="utf-8")


def main(
    directory: Annotated[Path, typer.Argument(help="Where the files are written.")],
    other: Annotated[Path | None, typer.Option(help="Files of before, to compare with.", exists=True)] = None,
) -> None:
    """Write what the outside sees of both services as files, and compare them with the earlier ones."""
    files = write_all()
    write(files, directory)
    print(f"{len(files)} files are in {directory}.")
    if other is None:
        return
    changed = [*differences(read(other), files)]
    sys.stdout.writelines(changed)
    if changed:
        raise typer.Exit(1)
    print("No difference.")


if __name__ == "__main__":
    typer.run(main)
