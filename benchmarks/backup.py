"""How long `holdfast backup` and `holdfast restore` take, and what is beside them: `cp`, `pg_dump` and a checksum.

    python -m benchmarks.backup --registrations 100000 --photos 1000

fills a bundled PostgreSQL and its photos, backs both services up into a file, and restores the file into an empty data
directory. Each photo has 700 kB and three sizes: 1 MB together. Nothing else happens in the services meanwhile.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from benchmarks import crowded_events, crowded_shop
from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from holdfast.kit.postgres import bundled
from holdfast.kit.postgres.bundled_server import PROGRAMS

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))

FILE_BYTES = {"": 700_000, ".w480.webp": 50_000, ".w960.webp": 100_000, ".w1920.webp": 150_000}
"""The sizes of a photo and of what is made of it, by the end of the name."""

PHOTOS = """
    insert into photos (key, organizer_id, state, content_type, content_length, idle_since, scaling_due, width, height,
                        widths)
    select 'photos/1/' || lpad(n::text, 22, '0') || '.jpg', 1, 'accepted', 'image/jpeg', 700000, null, null, 4000, 3000,
           array[480, 960, 1920]
      from generate_series(1, %s) as n
    returning key
"""


def fill(data_dir: Path, registrations: int, photos: int) -> None:
    """Make the databases of both services and the files of the photos."""
    urls = {product.name: bundled.database_url(data_dir, product.name) for product in (INVENTORY, EVENTS)}
    for product in (INVENTORY, EVENTS):
        product.migrate(urls[product.name])
    environment = {**os.environ, "HOLDFAST_DATA_DIR": str(data_dir), "INVENTORY_DATABASE_URL": urls["inventory"]}
    environment["INVENTORY_SECRET_KEY"] = "a secret that only benchmarks use"
    (data_dir / "inventory.secret").write_text(environment["INVENTORY_SECRET_KEY"])
    (data_dir / "events.secret").write_text(environment["INVENTORY_SECRET_KEY"])
    crowded_shop.fill(environment, crowded_shop.Sizes(entries=registrations, variants=1000, shops=100))
    sizes = crowded_events.Sizes(registrations, events=1000, queues=10, organizers=1000, prices=registrations // 10)
    crowded_events.fill(urls["events"], sizes)
    with psycopg.connect(urls["events"]) as connection:
        # What a trigger does otherwise. A restore checks every reference.
        connection.execute("insert into event_owners (event_id, organizer_id) select id, organizer_id from events")
        keys = connection.execute(PHOTOS, [photos]).fetchall()
    for (key,) in keys:
        for end, size in FILE_BYTES.items():
            path = data_dir / "media" / f"{key}{end}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(size))
    os.sync()


def seconds(work: Callable[[], object]) -> str:
    """How long some work takes, and the processor time of the programs it starts. The server's is not in it."""
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{time.monotonic() - started:.1f} s, {processor:.1f} s of a core; load {os.getloadavg()[0]:.1f}"


def run(*command: str, **environment: str) -> None:
    """Run a command. What it writes to standard error is shown."""
    subprocess.run(command, env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--registrations", type=int, default=100_000)
    parser.add_argument("--photos", type=int, default=1000)
    arguments = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="holdfast-backup-"))
    place.chmod(0o755)
    source, target, copy = place / "source", place / "target", place / "copy.tar"
    try:
        print(f"filled in {seconds(lambda: fill(source, arguments.registrations, arguments.photos))}")
        url = bundled.database_url(source, "events")
        dump = ["--format=custom", f"--file={place / 'floor.dump'}", url]
        print(f"pg_dump of events alone: {seconds(lambda: run(str(PROGRAMS / 'pg_dump'), *dump))}")
        files = ["-r", str(source / "media"), str(place / "floor")]
        print(f"cp of the photos alone: {seconds(lambda: run('cp', *files))}")
        shutil.rmtree(place / "floor")
        os.sync()
        took = seconds(lambda: run(HOLDFAST, "backup", str(copy), HOLDFAST_DATA_DIR=str(source)))
        print(f"backup: {took}, {copy.stat().st_size / 1e6:.0f} MB")
        took = seconds(lambda: run(HOLDFAST, "restore", str(copy), HOLDFAST_DATA_DIR=str(target)))
        print(f"restore: {took}")
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
