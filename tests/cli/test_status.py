"""`holdfast status`: both services on one screen."""

import asyncio
import json
import re
import subprocess

import psycopg

from tests.helpers.command_line import run_holdfast
from tests.helpers.databases import scratch_database
from tests.helpers.events_service import Service

NOWHERE = "postgresql://127.0.0.1:1/inventory"
MAIL = "insert into mails (kind, thread, recipient, arguments, hold) values ('seat', %s, 'ann@example.com', '{}', %s)"


async def status(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(run_holdfast, "status", *words, **environment)


async def test_the_status_of_both_services_shows_backlogs_and_faults(service: Service, inventory_url: str) -> None:
    ada = await service.organizer()
    await ada.create_queue()
    with psycopg.connect(service.database.url, autocommit=True) as connection:
        for thread, hold in (("a", None), ("b", None), ("c", "organizer")):
            connection.execute(MAIL, [thread, hold])
        connection.execute(
            "insert into procrastinate_jobs (queue_name, task_name, status) values ('default', 'post_letter', 'failed')"
        )
    with psycopg.connect(inventory_url, autocommit=True) as connection:
        connection.execute("insert into shops (domain) values ('ada.myshopify.com')")
        connection.execute("delete from migrations where name = (select max(name) from migrations)")
    urls = {"EVENTS_DATABASE_URL": service.database.url, "INVENTORY_DATABASE_URL": inventory_url}

    screen, listed = await status(**urls), await status("--json", **urls)

    assert screen.returncode == 0, screen.stderr
    for label, text in {
        "database": r"the database that EVENTS_DATABASE_URL names, PostgreSQL 1\d\S*",
        "processes": r"\d on \S.*; \d+ connections",
        "jobs": "failed 1, running 0, waiting 0",
        "mails": r"waiting 2, held 1, failed 0, oldest seconds \d+",
        "queues": "open 1, paused 0, visitors waiting 0",
        "shops": "total 1, connected 0, disconnected 0, never connected 1",
        "schema": "old; run holdfast inventory migrate. It lacks .+",
    }.items():
        assert re.search(rf"^  {label} +{text}$", screen.stdout, re.MULTILINE), (label, screen.stdout)
    services = json.loads(listed.stdout)["services"]
    assert services["events"]["mails"]["waiting"] == 2
    assert services["events"]["missing_migrations"] == []
    assert len(services["inventory"]["missing_migrations"]) == 1


async def test_a_database_that_was_never_migrated_is_reported_in_few_words(template_url: str) -> None:
    with scratch_database(template_url, "never_migrated", "template template0") as url:
        urls = {"EVENTS_DATABASE_URL": url, "COLUMNS": "200"}
        screen, listed = await status("--service=events", **urls), await status("--service=events", "--json", **urls)
        started = await asyncio.to_thread(run_holdfast, "events", "serve", "--port=0", **urls)

    assert re.findall(r"^  (\S.*?)  ", screen.stdout, re.MULTILINE) == [
        "database",
        "schema",
        "processes",
        "background work",
    ]
    assert "schema            none yet; run holdfast events migrate\n" in screen.stdout
    assert started.stderr.strip() == "The database has no tables yet. Make them with: holdfast events migrate"
    assert len(json.loads(listed.stdout)["services"]["events"]["missing_migrations"]) > 50


async def test_a_status_with_many_missing_migrations_names_the_first_of_them(inventory_url: str) -> None:
    with psycopg.connect(inventory_url, autocommit=True) as connection:
        connection.execute("delete from migrations where name like '000%'")
    urls = {"INVENTORY_DATABASE_URL": inventory_url, "INVENTORY_SECRET_KEY": 32 * "s", "COLUMNS": "300"}

    screen = await status("--service=inventory", **urls)
    started = await asyncio.to_thread(run_holdfast, "inventory", "serve", "--port=0", **urls)

    assert re.search(r"It lacks 0001\S+, 0002\S+, 0003\S+ and \d+ more$", screen.stdout, re.MULTILINE)
    assert re.search(r"The database lacks 0001\S+, 0002\S+, 0003\S+ and \d+ more\. Bring it", started.stderr)


async def test_a_service_that_cannot_be_read_is_one_line_and_all_of_them_are_an_error(service: Service) -> None:
    urls = {"EVENTS_DATABASE_URL": service.database.url, "INVENTORY_DATABASE_URL": NOWHERE}

    both, alone = await status(**urls), await status("--service=inventory", **urls)

    _, inventory, events, *_ = both.stdout.splitlines()
    assert inventory.startswith("Inventory  Cannot use the database that INVENTORY_DATABASE_URL names: ")
    assert events == "Events"
    assert (both.returncode, alone.returncode) == (0, 1)
