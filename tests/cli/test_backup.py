"""`holdfast backup` and `holdfast restore`, for services on an external PostgreSQL."""

import asyncio
import itertools
import json
import re
import resource
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
import typer

from holdfast.commands.backups.commands import backup, restore
from holdfast.events.resources import photo_store
from holdfast.events.settings import Settings
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.postgres.schema import dumps
from holdfast.kit.process.checks.files import BACKUPS_FILE
from holdfast.kit.process.resources import secret_of
from tests.helpers import inventory_service as inventory_support
from tests.helpers.command_line import run_holdfast
from tests.helpers.databases import scratch_database
from tests.helpers.events_service import Client, Service, eventually

PHOTO = f"photos/admin/{'p' * 22}.png"
SECRETS = {"INVENTORY_SECRET_KEY": "1" * 32, "EVENTS_SECRET_KEY": "2" * 32}

PAUSE_SECONDS = 0.05
"""Seconds between two requests of a load, which leave the processor to the backup."""

PHOTO_OF_EVENT = """
    insert into photos (key, state, content_type, content_length, idle_since, scaling_due, width, height, widths)
    values (%(key)s, 'accepted', 'image/png', 5, null, null, 300, 300, array[300])
"""


@pytest.fixture
def empty_databases(template_url: str) -> Iterator[dict[str, str]]:
    """Two empty databases, by the settings that name them."""
    with (
        scratch_database(template_url, "restored_inventory", "template template0") as inventory,
        scratch_database(template_url, "restored_events", "template template0") as events,
    ):
        yield {"INVENTORY_DATABASE_URL": inventory, "EVENTS_DATABASE_URL": events}


@dataclass
class Load:
    """Guests who register, and an agent who changes the stock of a pool: what was acknowledged so far."""

    organizer: Client
    event_id: int
    shop: inventory_support.Shop
    pool_id: int
    registered: list[str] = field(default_factory=list[str])
    on_hand: list[int] = field(default_factory=list[int])
    is_over: asyncio.Event = field(default_factory=asyncio.Event)

    async def register(self) -> None:
        while not self.is_over.is_set():
            email = f"guest{len(self.registered)}@example.com"
            await self.organizer.register(self.event_id, email=email)
            self.registered.append(email)
            await asyncio.sleep(PAUSE_SECONDS)

    async def change(self) -> None:
        while not self.is_over.is_set():
            answer = await self.shop.call("adjust_pool_quantity", pool_id=self.pool_id, delta=1)
            self.on_hand.append(answer["entries"][0]["balance_after"])
            await asyncio.sleep(PAUSE_SECONDS)

    async def has_begun(self) -> bool:
        return min(len(self.registered), len(self.on_hand)) >= 10


async def test_data_acknowledged_before_a_backup_of_busy_services_is_there_after_the_restore(
    own_service: Service, settings: Settings, inventory_url: str, empty_databases: dict[str, str], tmp_path: Path
) -> None:
    organizer = await own_service.organizer()
    event = await organizer.create_event(capacity=100_000)
    await own_service.run_sql(PHOTO_OF_EVENT, key=PHOTO)
    for name in (PHOTO, f"{PHOTO}.w480.webp"):
        await photo_store(settings, secret_of(settings)).write(name, b"photo", "image/png")
    (tmp_path / "stock").mkdir()
    of_stock = inventory_support.unlimited(inventory_url, tmp_path / "stock")
    secrets = {
        "INVENTORY_SECRET_KEY": secret_of(of_stock).value.decode(),
        "EVENTS_SECRET_KEY": secret_of(settings).value.decode(),
    }
    urls = {"INVENTORY_DATABASE_URL": inventory_url, "EVENTS_DATABASE_URL": settings.database_url}
    copy, data_dir = tmp_path / "copy.tar", str(settings.data_dir)

    async with inventory_support.running_inventory(of_stock) as inventory, asyncio.TaskGroup() as group:
        shop = await inventory.create_shop()
        load = Load(organizer, event["id"], shop, (await shop.create_pool(0))["id"])
        group.create_task(load.register())
        group.create_task(load.change())
        await eventually(load.has_begun)
        before, on_hand = [*load.registered], load.on_hand[-1]
        made = await asyncio.to_thread(run_holdfast, "backup", str(copy), HOLDFAST_DATA_DIR=data_dir, **secrets, **urls)
        load.is_over.set()

    assert made.returncode == 0, made.stderr
    assert "is finished and verified: inventory and events" in made.stdout
    assert len(load.registered) > len(before), "nothing was changed meanwhile"
    latest = json.loads((settings.data_dir / BACKUPS_FILE).read_text())
    assert latest["events"]["place"] == latest["inventory"]["place"] == str(copy)
    assert datetime.fromisoformat(latest["events"]["finished_at"]) <= datetime.now(UTC)

    target_dir = tmp_path / "target_dir"
    done = await asyncio.to_thread(
        run_holdfast, "restore", str(copy), HOLDFAST_DATA_DIR=str(target_dir), **secrets, **empty_databases
    )

    assert done.returncode == 0, done.stderr
    with psycopg.connect(empty_databases["EVENTS_DATABASE_URL"]) as connection:
        emails = {email for (email,) in connection.execute("select email from users").fetchall()}
        assert {*before} <= emails
        # The log of the event went on after the backup, so it must not go on from there under its name.
        assert connection.execute(
            "select generation from logs where closed_at is null and event_id is not null"
        ).fetchall() == [(2,)]
    for name in (PHOTO, f"{PHOTO}.w480.webp"):
        assert (target_dir / "media" / name).read_bytes() == b"photo"
    # The role and the rights of agents came along: the shop's key works.
    of_stock = inventory_support.unlimited(empty_databases["INVENTORY_DATABASE_URL"], tmp_path / "stock")
    async with inventory_support.running_inventory(of_stock) as again:
        assert on_hand <= await shop.at_service(again).on_hand(load.pool_id) <= load.on_hand[-1]
        assert await again.ledger_differences() == []


@pytest.fixture
def places(database_url: str, inventory_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings of both services, in the environment of this process."""
    places = {"EVENTS_DATABASE_URL": database_url, "INVENTORY_DATABASE_URL": inventory_url, **SECRETS}
    for name, value in {**places, "HOLDFAST_DATA_DIR": str(tmp_path / "data")}.items():
        monkeypatch.setenv(name, value)
    return places


def test_a_backup_that_cannot_be_written_leaves_no_file(places: dict[str, str], tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for name in ("copy", "copy.tar"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            with pytest.raises(CannotStart, match=r"File too large. Nothing was left there."):
                backup(tmp_path / name)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert [path.name for path in tmp_path.glob("copy*")] == []
    with pytest.raises(CannotStart, match=r"Give .* another name"):
        backup(tmp_path / "copy.tar.gz")


def test_a_photo_missing_in_the_store_is_reported_and_the_rest_is_backed_up(
    places: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(places["EVENTS_DATABASE_URL"]) as connection:
        connection.execute(PHOTO_OF_EVENT, {"key": PHOTO})

    with pytest.raises(typer.Exit) as ended:
        backup(tmp_path / "copy")

    assert ended.value.exit_code == 1
    assert f"Events show photos that the store does not have: 2, such as {PHOTO}" in capsys.readouterr().err


def test_a_restore_refuses_to_overwrite_data_or_to_read_a_damaged_backup(
    places: dict[str, str],
    empty_databases: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    copy = tmp_path / "copy"
    backup(copy)
    assert (copy / "secrets" / "events.secret").stat().st_mode & 0o777 == 0o600

    def refusal(place: Path = copy, *, replace: bool = False) -> str:
        with pytest.raises(CannotStart) as error:
            restore(place, replace=replace, yes=True)
        return str(error.value)

    (empty_directory := tmp_path / "empty.tar").mkdir()
    for place in (copy, empty_directory):
        with pytest.raises(CannotStart, match="A backup never replaces another one"):
            backup(place)
    for name, value in empty_databases.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("EVENTS_SECRET_KEY", "3" * 32)
    assert refusal().startswith("EVENTS_SECRET_KEY is another secret key than that of the backup")
    monkeypatch.setenv("EVENTS_SECRET_KEY", SECRETS["EVENTS_SECRET_KEY"])

    damaged = Path(shutil.copytree(copy, tmp_path / "damaged"))
    dump = (damaged / "events.dump").read_bytes()
    (damaged / "events.dump").write_bytes(dump[:-1] + bytes([dump[-1] ^ 1]))
    assert refusal(damaged) == f"events.dump in {damaged} is damaged: its checksum differs. Use another backup."
    (damaged / "manifest.json").unlink()
    assert "or one that was interrupted" in refusal(damaged)
    later = Path(shutil.copytree(copy, tmp_path / "later"))
    manifest = (later / "manifest.json").read_text()
    (later / "manifest.json").write_text(manifest.replace('"0001_baseline.sql"', '"9999_later.sql"', 1))
    assert "which is newer: this version does not know 9999_later.sql." in refusal(later)

    # None of these has changed anything, so the databases are still empty.
    monkeypatch.delenv("EVENTS_SECRET_KEY")
    restore(copy, dry_run=True)
    plan = capsys.readouterr().out
    assert re.search(r"^events: .* go to the database \w+ on \S+:\d+ \(EVENTS_DATABASE_URL\)\.", plan, re.MULTILINE)
    assert f"events: Set EVENTS_SECRET_KEY to the text in secrets/events.secret of {copy}." in plan
    restore(copy)
    assert "every table has as many rows as in the backup" in capsys.readouterr().out
    monkeypatch.setenv("EVENTS_SECRET_KEY", SECRETS["EVENTS_SECRET_KEY"])
    assert "The database of inventory is not empty." in refusal()
    restore(copy, dry_run=True)
    assert "The database is not empty: it is refused, unless --replace removes what it has." in capsys.readouterr().out
    with psycopg.connect(empty_databases["EVENTS_DATABASE_URL"], application_name="holdfast events"):
        assert "The events service is running: it has 1 sessions" in refusal(replace=True)
    restore(copy, replace=True, dry_run=True)
    assert "The database is not empty: what it has is removed." in capsys.readouterr().out
    restore(copy, replace=True, yes=True)
    assert "every table has as many rows as in the backup" in capsys.readouterr().out


def test_a_restore_that_loses_its_connection_leaves_the_database_as_it_was(
    places: dict[str, str], empty_databases: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(tmp_path / "copy")
    for name, value in empty_databases.items():
        monkeypatch.setenv(name, value)
    archive = (tmp_path / "copy" / "events.dump").read_bytes()

    def ended() -> Iterator[bytes]:
        yield from itertools.islice(dumps.script([archive]), 1)
        raise ConnectionError

    damaged = dumps.script([archive[: len(archive) // 2]])
    with pytest.raises(ConnectionError):
        dumps.fill(empty_databases["EVENTS_DATABASE_URL"], "events", ended(), {}, replace=False)
    with pytest.raises(CannotStart, match=r"^pg_restore did not finish: "):
        dumps.fill(empty_databases["EVENTS_DATABASE_URL"], "events", damaged, {}, replace=False)

    with psycopg.connect(empty_databases["EVENTS_DATABASE_URL"]) as connection:
        assert dumps.is_empty(connection)


def test_a_backup_without_a_database_writes_nothing_and_names_the_option_for_the_other_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(tmp_path / "data"))

    with pytest.raises(CannotStart, match=r"There is no inventory database .* add: --service events"):
        backup(tmp_path / "copy")
    with pytest.raises(CannotStart, match=r"There is no backup at "):
        restore(tmp_path / "copy")

    assert list(tmp_path.iterdir()) == []
