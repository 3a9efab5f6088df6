"""`holdfast check` finds what is wrong, and says what to do."""

import asyncio
import contextlib
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer
from psycopg.conninfo import conninfo_to_dict
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from holdfast.commands import check_report
from holdfast.events import checks as events
from holdfast.events.product import EVENTS
from holdfast.inventory.product import INVENTORY
from holdfast.kit.environment.settings import Settings
from holdfast.kit.process.checks.finding import CheckLimits, Finding
from holdfast.kit.process.checks.inspection import open_inspection, run_checks
from holdfast.kit.process.checks.schema import OBJECTS, read_objects, schema_file
from holdfast.kit.security.secrets import Secret
from tests.inventory.support import unlimited as unlimited_inventory
from tests.serving import listener, serving
from tests.smtp import mail_server
from tests.support import unlimited as unlimited_events
from tests.test_cli import holdfast_in

PAGE = Path(__file__).parents[2] / "docs" / "deploy" / "watching.md"
PATHS = {"/healthz", "/readyz", "/metrics"}
SECRET = "the secret of the services in these tests"
NOWHERE = "http://127.0.0.1:1"

SHOP = """
    insert into shops (domain) values ('ada.myshopify.com');
    insert into shared_inventories (shop_id) select id from shops;
    insert into installs (shop_id, scopes) select id, '{}' from shops;
"""
EVENT = """
    insert into users (public_id, email, name, role, slug)
    values ('aaaaaaaa', 'ada@example.com', 'Ada', 'organizer', 'ada');
    insert into events (organizer_id, title, body, datetime, capacity, waitinglist_capacity, currency, pricing_mode,
                        price, recurrence_frequency, recurrence_interval, recurs_from)
    select id, 'Jazz', '', now() + interval '1 day', 9, 9, 'EUR', 'free', 0, 'none', 0, now() from users;
    insert into registrations (event_id, user_id, arrival, amount_paid, received_at, organizer_id)
    select events.id, users.id, 1, 0, now() - interval '1 hour', users.id from events, users;
"""


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with a service.

    point      where it is found
    message    a part of what is said about it
    remedy     a part of what is said that helps
    sql        a statement that plants it in the database; errors of it are a part of some faults
    settings   the settings with which the service has it; `SERVER` in them is the address of the local server
    files      files of the data directory, with their content and mode
    mail       options of a mail server, which the service uses then
    running    the processes of the service that are connected
    clock      by how many seconds the clock of this machine is ahead
    is_bundled whether the settings name no database, as with the bundled PostgreSQL
    undo       a statement for what the next test would not find as new
    session    the name of a session that is connected, and does nothing
    """

    service: str
    point: str
    message: str
    remedy: str
    sql: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    files: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    mail: Mapping[str, str] | None = None
    running: int = 0
    clock: float = 0
    limits: CheckLimits = field(default_factory=CheckLimits)
    is_bundled: bool = False
    undo: str = ""
    session: str = ""
    status: str = "wrong"


PAYMENTS = {"stripe_key": "sk_test", "stripe_webhook_secret": "whsec_test"}
PLATFORM = {"client_id": "app", "client_secret": "not the one of the platform"}

FAULTS = {
    "a wrong secret": Fault(
        "events",
        "secret",
        "The secret does not open what is stored in trusted_auth_keys.",
        "Set EVENTS_SECRET_KEY to the secret with which it was stored.",
        "insert into trusted_auth_keys (kid, sealed) values ('key', %(sealed)s)",
        {"secret_key": "another secret than that of what is stored"},
    ),
    "a secret that is not rotated to the end": Fault(
        "events",
        "secret",
        "Some of what is stored is still encrypted with EVENTS_OLD_SECRET_KEY.",
        "Run: holdfast events reseal",
        "insert into trusted_auth_keys (kid, sealed) values ('key', %(sealed)s)",
        {"secret_key": "another secret than that of what is stored", "old_secret_key": SECRET},
        status="warning",
    ),
    "a lost secret": Fault(
        "events",
        "secret",
        "events.secret is missing, and only the secret in it opens what is stored.",
        "Restore the file from the backup of the data directory, or set EVENTS_SECRET_KEY to that secret.",
        "insert into trusted_auth_keys (kid, sealed) values ('key', %(sealed)s)",
        {"secret_key": ""},
        is_bundled=True,
    ),
    "no secret for a named database": Fault(
        "inventory",
        "secret",
        "INVENTORY_DATABASE_URL is set and INVENTORY_SECRET_KEY is not.",
        "Set INVENTORY_SECRET_KEY to the secret of the service, the same on every machine.",
        settings={"secret_key": ""},
    ),
    "a secret that everybody reads": Fault(
        "events",
        "secret",
        "Every user of this machine can read ",
        "Run: chmod o= ",
        settings={"secret_key": ""},
        is_bundled=True,
        files={"events.secret": (SECRET, 0o644)},
    ),
    "a clock an hour ahead": Fault(
        "events",
        "clock",
        "The clock of this machine is 1 hour ahead of the clock of the database.",
        "timedatectl set-ntp true",
        clock=3600,
    ),
    "a missing index": Fault(
        "events",
        "schema",
        "The index events_by_date is missing.",
        "Run in the database: CREATE INDEX CONCURRENTLY events_by_date ON events USING btree (organizer_id, datetime,",
        "drop index events_by_date",
    ),
    "an index that is not valid": Fault(
        "events",
        "schema",
        "The index half_made is not valid, so it is not used.",
        "reindex index concurrently half_made;",
        "create unique index concurrently half_made on migrations ((1))",
    ),
    "a missing trigger": Fault(
        "events",
        "schema",
        "The trigger count_inserted of registrations is missing.",
        "Run in the database: CREATE TRIGGER count_inserted AFTER INSERT ON registrations",
        "drop trigger count_inserted on registrations",
    ),
    "a disabled trigger": Fault(
        "events",
        "schema",
        "The trigger count_deleted of registrations is disabled.",
        "alter table registrations enable trigger count_deleted;",
        "alter table registrations disable trigger count_deleted",
    ),
    "a missing constraint": Fault(
        "events",
        "schema",
        "The constraint no_more_seats_than_capacity of events is missing.",
        "ALTER TABLE events ADD CONSTRAINT no_more_seats_than_capacity CHECK ((registered_count <= capacity));",
        "alter table events drop constraint no_more_seats_than_capacity",
    ),
    "a missing function": Fault(
        "events",
        "schema",
        "The function registrations_containing is missing.",
        "the statement that begins with CREATE FUNCTION registrations_containing in ",
        "drop function registrations_containing",
    ),
    "row security that is off": Fault(
        "inventory",
        "schema",
        "Row-level security of the table pools is off.",
        "ALTER TABLE pools ENABLE ROW LEVEL SECURITY;",
        "alter table pools disable row level security",
    ),
    "a pending migration": Fault(
        "events",
        "migrations",
        "The database lacks 0005_look_of_organizers.sql.",
        "Run: holdfast events migrate",
        "delete from migrations where name = '0005_look_of_organizers.sql'",
    ),
    "an edited migration": Fault(
        "events",
        "migrations",
        "0003_drafts.sql: the file differs from the one that was applied under this name.",
        "Install the released version again",
        "update migrations set checksum = 'edited' where name = '0003_drafts.sql'",
    ),
    "a migration of a newer version": Fault(
        "events",
        "migrations",
        "The database has 0999_future.sql, which this version does not know.",
        "Install the version that migrated the database",
        "insert into migrations (name, checksum) values ('0999_future.sql', '')",
        status="warning",
    ),
    "a full disk": Fault(
        "events",
        "data directory",
        " are free on the disk of ",
        "Make the disk larger",
        limits=CheckLimits(min_free_bytes=10**18),
    ),
    "a data directory that is a file": Fault(
        "inventory",
        "data directory",
        "This user may not write to ",
        "set HOLDFAST_DATA_DIR to another directory",
        settings={"data_dir": Path("/dev/null/data")},
    ),
    "changes that a crash loses": Fault(
        "events",
        "durability",
        "PostgreSQL has synchronous_commit = off. A crash loses what was confirmed in the last moments.",
        "alter system set synchronous_commit = on;",
        "alter database DATABASE set synchronous_commit = off",
    ),
    "a database that takes no changes": Fault(
        "events",
        "server",
        "The database takes no changes: default_transaction_read_only is on.",
        "alter database NAME reset default_transaction_read_only;",
        "alter database DATABASE set default_transaction_read_only = on",
    ),
    "too few connections": Fault(
        "events",
        "connections",
        "one process of the service needs up to 206.",
        "Raise max_connections of PostgreSQL",
        settings={"pool_size": 200},
    ),
    "a user that may not make tables": Fault(
        "events",
        "rights",
        "may not make tables, so migrations fail.",
        "grant create on schema public to holdfast;",
        "revoke create on schema public from pg_database_owner, public",
        undo="grant create on schema public to pg_database_owner",
    ),
    "a base address of another program": Fault(
        "events",
        "base address",
        "does not lead to the service: /.well-known/oauth-protected-resource is answered with 404.",
        "that it forwards to the service; or correct EVENTS_BASE_URL.",
        settings={"base_url": "SERVER"},
        running=1,
    ),
    "a base address that nobody reaches": Fault(
        "inventory",
        "base address",
        f"{NOWHERE} cannot be reached from here: ",
        "Look at DNS, the firewall, the certificate and the proxy",
        settings={"base_url": NOWHERE},
        running=1,
    ),
    "a base address without encryption": Fault(
        "events",
        "base address",
        "keys and sign-in links cross the network unencrypted.",
        "set EVENTS_BASE_URL to an https address.",
        settings={"base_url": "http://events.example.com"},
    ),
    "no base address behind a proxy": Fault(
        "events",
        "base address",
        "EVENTS_BASE_URL is not set, so links in mails lead to the address on which a process listens.",
        "Set EVENTS_BASE_URL to the public address",
        settings={"base_url": "", "trusted_proxies": "10.0.0.0/8"},
    ),
    "a mail server that nobody reaches": Fault(
        "events",
        "mail server",
        "The mail server 127.0.0.1 cannot be reached: ",
        "Correct SMTP_HOST, SMTP_PORT and SMTP_SECURITY",
        settings={
            "smtp_host": "127.0.0.1",
            "smtp_port": 1,
            "smtp_security": "none",
            "mail_from": "tickets@events.example",
        },
    ),
    "a sender that the mail server refuses": Fault(
        "events",
        "mail server",
        "127.0.0.1 refuses the sender Holdfast <tickets@events.example>: 553 not yours.",
        "Set MAIL_FROM to an address that this server may send for",
        mail={"MAIL": "553 not yours"},
    ),
    "a mail server without encryption": Fault(
        "inventory",
        "mail server",
        "The connection to 127.0.0.1 cannot be encrypted: ",
        "Set SMTP_SECURITY to what the server offers",
        settings={"smtp_security": "starttls"},
        mail={},
    ),
    "a mail that waits": Fault(
        "events",
        "mails",
        "A mail has waited for 1 hour: 451 later.",
        "holdfast events mail list",
        "insert into mails (kind, thread, recipient, arguments, inserted_at, error)"
        " values ('seat', 'a', 'ann@example.com', '{}', now() - interval '1 hour', '451 later')",
    ),
    "a mail that was refused": Fault(
        "inventory",
        "mails",
        "1 mail was refused within 7 days, last: 550 unknown.",
        "holdfast inventory mail retry ID",
        "insert into mails (kind, thread, recipient, arguments, ended_at, outcome, error)"
        " values ('link', 'a', 'ann@example.com', '{}', now(), 'failed', '550 unknown')",
        status="warning",
    ),
    "a job that failed for good": Fault(
        "events",
        "jobs",
        "1 job has failed for good, last: cancel_events.",
        "holdfast events jobs --retry ID",
        "insert into procrastinate_jobs (queue_name, task_name, status) values ('default', 'cancel_events', 'failed')",
    ),
    "processes that leave the work to others": Fault(
        "events",
        "leaders",
        "Processes run, and none of them does the background work.",
        "Start one: holdfast events worker.",
        running=2,
    ),
    "a leader that has stalled": Fault(
        "events",
        "leaders",
        "A process that does background work (from this machine) has done nothing for 0 seconds.",
        "End that process and start it again. Its session in PostgreSQL has the number ",
        session="holdfast events leaders 12345678",
        running=1,
        limits=CheckLimits(max_idle_seconds=-1),
    ),
    "rights that a restore left out": Fault(
        "inventory",
        "schema",
        "The role holdfast_shop lacks the right select on drawn.",
        "Run in the database: GRANT SELECT ON TABLE drawn TO holdfast_shop;",
        "revoke select on drawn from holdfast_shop",
        undo="grant select on drawn to holdfast_shop",
    ),
    "a registration that nobody settles": Fault(
        "events",
        "due work",
        "A registration waits to be settled for 1 hour.",
        "holdfast events worker",
        EVENT,
        running=1,
    ),
    "seats that were counted wrong": Fault(
        "events",
        "seats",
        "counts 3 seats taken and 0 waiting; it has 0 and 0.",
        "set registered_count = 0, waitlisted_count = 0 where id = ",
        EVENT + "update events set registered_count = 3",
    ),
    "no backup": Fault(
        "events",
        "backups",
        "No backup is known: ",
        "Make one every day, to another machine: holdfast backup DIRECTORY.",
        EVENT,
        status="warning",
    ),
    "an old backup": Fault(
        "events",
        "backups",
        "old. It is in /backups.",
        "holdfast backup DIRECTORY",
        EVENT,
        files={"backups.json": ('{"events": {"finished_at": "2026-01-02T03:04:05Z", "place": "/backups"}}', 0o600)},
        status="warning",
    ),
    "a photo that is gone": Fault(
        "events",
        "photos",
        "1 of the 1 newest photos are not in the store: photos/admin/aaaaaaaaaaaaaaaaaaaaaa.jpg.",
        "Restore the photos from the backup",
        "insert into photos (key, state, content_type, content_length)"
        " values ('photos/admin/aaaaaaaaaaaaaaaaaaaaaa.jpg', 'accepted', 'image/jpeg', 9)",
    ),
    "a bucket that nobody reaches": Fault(
        "events",
        "photo store",
        f"Files cannot be written to and read from the bucket photos at {NOWHERE}: ",
        "Correct S3_BUCKET, S3_ENDPOINT_URL",
        settings={
            "s3_bucket": "photos",
            "s3_endpoint_url": NOWHERE,
            "s3_access_key_id": "key",
            "s3_secret_access_key": "key",
        },
    ),
    "a key that the payment processor refuses": Fault(
        "events",
        "payments",
        "refuses STRIPE_SECRET_KEY: Invalid API Key provided",
        "Set STRIPE_SECRET_KEY to the secret key of the platform's account",
        settings={**PAYMENTS, "stripe_api": "SERVER"},
    ),
    "a payment processor that nobody reaches": Fault(
        "events",
        "payments",
        f"{NOWHERE} cannot be reached: ",
        "Let the firewall allow connections to api.stripe.com",
        settings={**PAYMENTS, "stripe_api": NOWHERE},
    ),
    "an address of webhooks that nobody reaches": Fault(
        "events",
        "payment webhooks",
        f"Nobody reaches the address of webhooks, {NOWHERE}/stripe/webhook: ",
        "Let the proxy forward /stripe/webhook to the service",
        settings={**PAYMENTS, "base_url": NOWHERE},
        running=1,
    ),
    "webhooks that lead to another program": Fault(
        "inventory",
        "webhook address",
        "/webhooks/shopify does not lead to the service: it is answered with 404.",
        "Let the proxy forward /webhooks/shopify to the service",
        SHOP,
        {"base_url": "SERVER"},
        running=1,
    ),
    "a client secret that the platform refuses": Fault(
        "inventory",
        "platform",
        "The storefront platform refuses INVENTORY_CLIENT_ID or INVENTORY_CLIENT_SECRET: ",
        "Set both to what the platform shows for the app.",
        SHOP,
        {**PLATFORM, "platform_address": "SERVER/{shop}"},
    ),
    "a platform that nobody reaches": Fault(
        "inventory",
        "platform",
        "The storefront platform is not reached for ada.myshopify.com: ",
        "or correct PLATFORM_ADDRESS.",
        SHOP,
        {**PLATFORM, "platform_address": f"{NOWHERE}/{{shop}}"},
    ),
    "an access that was withdrawn": Fault(
        "inventory",
        "shops",
        "The shop ada.myshopify.com has withdrawn the access: the token ended.",
        "http://inventory.test/auth?shop=ada.myshopify.com",
        SHOP + "update installs set broken = 'the token ended'",
    ),
    "webhooks that the platform refuses to send": Fault(
        "inventory",
        "shops",
        "The platform refuses webhooks of ada.myshopify.com: orders/updated: Address is not allowed.",
        "Correct INVENTORY_BASE_URL",
        SHOP + "update installs set subscription_errors = '{\"orders/updated: Address is not allowed\"}'",
    ),
    "a webhook that was given up": Fault(
        "inventory",
        "webhooks",
        "1 webhook was given up after many attempts, last orders/updated: no such order.",
        "holdfast inventory webhooks --retry-all",
        SHOP
        + "insert into webhooks (shop_id, webhook_id, topic, due_at, error)"
        + " select id, 'a', 'orders/updated', null, 'no such order' from shops",
    ),
    "a pool that differs from its ledger": Fault(
        "inventory",
        "ledger",
        "on_hand 5, its ledger sums to 0",
        "Then correct the pool in the console",
        SHOP + "insert into pools (shop_id, name, unit, version, on_hand) select id, 'Jars', 'jar', 1, 5 from shops",
    ),
}


async def answer(request: Request) -> Response:
    """A program that is not ours, and that refuses keys as the partners do."""
    if request.url.path.endswith("/admin/oauth/access_token"):
        return JSONResponse({"error": "invalid_client"}, 401)
    if request.url.path.startswith("/v1/"):
        return JSONResponse({"error": {"message": "Invalid API Key provided", "type": "invalid_request_error"}}, 401)
    return PlainTextResponse("not found", 404)


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[str]:
    """The address of a program that is not ours."""
    listening = listener()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await (await answer(Request(scope)))(scope, receive, send)

    async with serving(app, listening, lifespan="off"):
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def as_they_should_be(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A function that returns the settings of a service with a new database, and nothing wrong."""
    settings: dict[str, Callable[[], Settings]] = {
        "events": lambda: unlimited_events(request.getfixturevalue("database_url"), tmp_path),
        "inventory": lambda: unlimited_inventory(request.getfixturevalue("inventory_url"), tmp_path),
    }

    def of_service(service: str) -> Settings:
        return settings[service]().model_copy(update={"secret_key": SECRET})

    return of_service


async def findings(settings: Settings, fault: Fault) -> list[Finding]:
    """What is found at the point of a fault, with these settings."""
    product, checks = check_report.PRODUCTS[fault.service]
    inspection, reached = await open_inspection(product, settings, fault.limits)
    assert reached.status == "ok"
    changes: dict[str, Any] = {"clock": lambda: time.time() + fault.clock}
    if fault.running:
        changes["process_count"] = fault.running
    if fault.is_bundled:
        changes["settings"] = settings.model_copy(update={"database_url": ""})
    inspection = replace(inspection, **changes)
    return await run_checks(inspection, [check for check in checks if check.point == fault.point])


def plant(fault: Fault, settings: Settings) -> None:
    for name, (content, mode) in fault.files.items():
        (settings.data_dir / name).write_text(content)
        (settings.data_dir / name).chmod(mode)
    database = str(conninfo_to_dict(settings.database_url)["dbname"])
    # The statement that leaves an index that is not valid fails.
    with contextlib.suppress(psycopg.errors.UniqueViolation):
        execute(settings.database_url, fault.sql.replace("DATABASE", database))


def execute(url: str, statement: str) -> None:
    values = {"sealed": Secret(SECRET.encode()).seal("a key")} if "%(sealed)s" in statement else None
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode(), values)


@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_is_found_with_its_remedy(name: str, as_they_should_be: Any, server: str) -> None:
    fault = FAULTS[name]
    settings = as_they_should_be(fault.service)
    plant(fault, settings)
    values = fault.settings.items()
    changes = {key: value.replace("SERVER", server) if isinstance(value, str) else value for key, value in values}
    with contextlib.ExitStack() as stack:
        if fault.mail is not None:
            mails = stack.enter_context(mail_server())
            mails.answers = {command: [text] for command, text in fault.mail.items()}
            changes = {**mails.settings, **changes}
        if fault.session:
            stack.enter_context(psycopg.connect(settings.database_url, application_name=fault.session))
        results = await findings(settings.model_copy(update=changes), fault)
    if fault.undo:
        execute(settings.database_url, fault.undo)

    [finding] = [finding for finding in results if fault.message in finding.message]
    assert fault.remedy in finding.remedy
    assert (finding.status, finding.point, finding.service) == (fault.status, fault.point, fault.service)


@pytest.mark.parametrize("service", check_report.PRODUCTS)
async def test_nothing_is_wrong_with_what_is_as_it_should_be(service: str, as_they_should_be: Any) -> None:
    product, checks = check_report.PRODUCTS[service]

    results, inspection = await check_report.inspect(product, as_they_should_be(service), checks)

    # The server of the tests keeps nothing through a crash, for speed.
    assert {finding.point for finding in results if finding.status not in {"ok", "skipped"}} <= {"durability"}
    assert {finding.point for finding in results if finding.status == "skipped"} == {"base address", "leaders"}
    async with inspection.reader() as reader:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await reader.value("create table nothing_is_changed ()")


@pytest.mark.parametrize("service", check_report.PRODUCTS)
async def test_schema_sql_names_every_object_of_the_database(service: str, as_they_should_be: Any) -> None:
    product, _ = check_report.PRODUCTS[service]
    inspection, _ = await open_inspection(product, as_they_should_be(service))
    async with inspection.reader() as reader:
        present = {(kind, name) for kind, name in await reader.tuples(OBJECTS)}

    named = {(part.kind, part.name) for part in read_objects(schema_file(product))}

    unnamed = {(kind, name) for kind, name in present - named if kind not in {"index", "sequence"}}
    assert named - present == set()
    assert {name for _, name in unnamed if "procrastinate_" not in name} == {"enqueue_task"}
    # Those of constraints and of identity columns have no statement of their own.
    constraints = {name.partition(" of ")[0] for kind, name in named if kind == "constraint"}
    indexes = {name for kind, name in present - named if kind == "index" and "procrastinate_" not in name}
    assert indexes <= constraints


def test_the_page_for_operators_has_every_point() -> None:
    points = {check.point for _, checks in check_report.PRODUCTS.values() for check in checks}

    assert points | {"settings", "database"} == {*re.findall(r"^\| `(.+?)` \|", PAGE.read_text(), re.MULTILINE)} - PATHS


async def test_a_database_that_is_away_hides_nothing_else(tmp_path: Path) -> None:
    settings = unlimited_events("postgresql://ann:hunter2@127.0.0.1:1/events", tmp_path)
    settings = settings.model_copy(update={"secret_key": SECRET, "base_url": "http://events.example.com"})

    results, _ = await check_report.inspect(EVENTS, settings, events.CHECKS)

    by_point = {finding.point: finding for finding in results}
    assert by_point["database"].message.startswith("The database that EVENTS_DATABASE_URL names cannot be used: ")
    assert by_point["database"].remedy == (
        "Check the address, the user and the password in EVENTS_DATABASE_URL, and that PostgreSQL runs."
    )
    assert by_point["seats"].message == "Not looked at, because the database cannot be reached."
    assert "unencrypted" in " ".join(finding.message for finding in results if finding.point == "base address")
    assert by_point["data directory"].status == "ok"
    assert "hunter2" not in repr(results)


async def test_what_the_services_have_in_common_by_mistake_is_found(tmp_path: Path) -> None:
    both = {"secret_key": SECRET, "base_url": "https://holdfast.example.com"}
    events_settings = unlimited_events("postgresql://127.0.0.1:1/events", tmp_path).model_copy(update=both)
    stock_settings = unlimited_inventory("postgresql://127.0.0.1:1/inventory", tmp_path).model_copy(update=both)
    opened, _ = await open_inspection(EVENTS, events_settings)
    opened_stock, _ = await open_inspection(INVENTORY, stock_settings)

    address, secret = check_report.compare([opened, opened_stock])

    assert (address.status, address.message) == (
        "wrong",
        "EVENTS_BASE_URL and INVENTORY_BASE_URL are the same address.",
    )
    assert address.remedy.startswith("Give each an address of its own")
    assert (secret.status, secret.message) == (
        "warning",
        "Both services have the same secret: whoever gets it opens both.",
    )
    assert secret.remedy == "Rotate the secret of one of them: docs/deploy/secrets.md"


@pytest.mark.skipif("HOLDFAST_TEST_DATABASE_URL" in os.environ, reason="another PostgreSQL may have other settings")
async def test_the_command_prints_each_point_in_80_columns_or_as_json_and_exits_with_1(
    database_url: str, tmp_path: Path
) -> None:
    environment = {
        "EVENTS_DATABASE_URL": database_url,
        "EVENTS_BASE_URL": "http://127.0.0.1:9",
        "HOLDFAST_DATA_DIR": str(tmp_path),
        "COLUMNS": "80",
    }
    text = await asyncio.to_thread(holdfast_in, tmp_path, "check", **environment)
    words = ("check", "--service", "events", "--point", "clock", "--json")
    as_json = await asyncio.to_thread(holdfast_in, tmp_path, *words, **environment)

    assert (text.returncode, text.stderr) == (1, "")
    lines = text.stdout.splitlines()
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= 80
    assert "Holdfast Events" in lines
    assert any(line.startswith("✗ durability       PostgreSQL has full_page_writes = off.") for line in lines)
    assert any(line.startswith("                   → As a superuser, run: alter system set") for line in lines)
    assert "Holdfast Inventory is not set up here" in text.stdout
    assert lines[-1].startswith("2 wrong, 0 warnings, ")
    report = json.loads(as_json.stdout)
    assert as_json.returncode == 0
    assert report["counts"] == {"ok": 1, "warning": 0, "wrong": 0, "skipped": 0}
    [finding] = report["findings"]
    assert list(finding) == ["service", "point", "status", "message", "remedy"]
    assert (finding["service"], finding["point"], finding["status"]) == ("events", "clock", "ok")
    with pytest.raises(typer.BadParameter, match=r"There is no point clok\. The points are: backups, "):
        await check_report.find(["events"], ["clok"])
