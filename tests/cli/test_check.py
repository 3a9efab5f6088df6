"""`holdfast check` finds faults of an installation, and names the remedy."""

import asyncio
import contextlib
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from string import Formatter
from typing import Any

import psycopg
import pytest
import typer
from psycopg.conninfo import conninfo_to_dict
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from holdfast.commands import check_report
from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from holdfast.kit.environment.settings import Settings
from holdfast.kit.process.checks.check_list import FaultQuery, run_checks
from holdfast.kit.process.checks.inspection import Finding, open_inspection
from holdfast.kit.process.checks.schema import OBJECTS, read_objects, schema_file
from holdfast.kit.security.service_secret import Secret
from tests.cli import faults_of_addresses, faults_of_databases, faults_of_work
from tests.cli.planted_faults import SECRET, Fault
from tests.helpers.command_line import run_holdfast_in
from tests.helpers.events_service import unlimited as unlimited_events
from tests.helpers.inventory_service import unlimited as unlimited_inventory
from tests.helpers.serving import bind_port, serve_app
from tests.helpers.smtp import mail_server

PAGE = Path(__file__).parents[2] / "docs" / "deploy" / "watching.md"
PATHS = {"/healthz", "/readyz", "/metrics"}
FAULTS = {**faults_of_databases.FAULTS, **faults_of_addresses.FAULTS, **faults_of_work.FAULTS}


async def answer(request: Request) -> Response:
    """A program that is not ours, and that refuses keys as the partners do."""
    if request.url.path.startswith("/elsewhere"):
        return PlainTextResponse("welcome", 403)
    if request.url.path.endswith("/admin/oauth/access_token"):
        return JSONResponse({"error": "invalid_client"}, 401)
    if request.url.path.startswith("/v1/"):
        return JSONResponse({"error": {"message": "Invalid API Key provided", "type": "invalid_request_error"}}, 401)
    return PlainTextResponse("not found", 404)


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[str]:
    """The address of a program that is not ours."""
    port = bind_port()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await (await answer(Request(scope)))(scope, receive, send)

    async with serve_app(app, port, lifespan="off"):
        yield port.url


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
    process, checks = check_report.SERVICES[fault.service]
    inspection = await open_inspection(process, settings, fault.limits)
    assert [reached.status for reached in inspection.findings] == ["ok"]
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
    assert re.search(r"[^.]\.$", finding.message)
    assert not re.search(r"\.\.|:\.", finding.message + finding.remedy)
    assert (finding.status, finding.point, finding.service) == (fault.status, fault.point, fault.service)


async def test_the_statement_of_the_check_corrects_wrong_counts_of_seats(as_they_should_be: Any) -> None:
    fault, settings = FAULTS["seats that were counted wrong"], as_they_should_be("events")
    plant(fault, settings)
    [before] = [finding for finding in await findings(settings, fault) if finding.point == "seats"]

    execute(settings.database_url, before.remedy.partition("run in the database: ")[2])

    [after] = [finding for finding in await findings(settings, fault) if finding.point == "seats"]
    assert (before.status, after.status) == ("wrong", "ok")


@pytest.mark.parametrize("service", check_report.SERVICES)
async def test_a_correct_installation_passes_all_checks(service: str, as_they_should_be: Any) -> None:
    results, inspection = await check_report.inspect(service, as_they_should_be(service))

    # The server of the tests keeps nothing through a crash, for speed.
    assert {finding.point for finding in results if finding.status not in {"ok", "skipped"}} <= {"durability"}
    assert {finding.point for finding in results if finding.status == "skipped"} == {"base address", "leaders"}
    async with inspection.connection() as opened:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await opened.connection.execute("create table nothing_is_changed ()")


@pytest.mark.parametrize("service", check_report.SERVICES)
async def test_the_fields_of_a_finding_are_columns_of_its_query(service: str, as_they_should_be: Any) -> None:
    process, checks = check_report.SERVICES[service]
    inspection = await open_inspection(process, as_they_should_be(service))
    fields, columns = dict[str, set[str]](), dict[str, set[str]]()

    async with inspection.connection() as opened:
        for check in checks:
            if isinstance(query := check.run, FaultQuery):
                cursor = await opened.connection.execute(*query.statement(inspection))
                sentences = [query.ok, *(text for fault in query.faults for text in (fault.message, fault.remedy))]
                columns[check.point] = {column.name for column in cursor.description or ()}
                fields[check.point] = {
                    field for sentence in sentences for _, field, _, _ in Formatter().parse(sentence) if field
                }

    assert len(fields) > 8
    assert {point: fields[point] - columns[point] - {"service", "database_url"} for point in fields} == {
        point: set() for point in fields
    }


@pytest.mark.parametrize("service", check_report.SERVICES)
async def test_schema_sql_names_every_object_of_the_database(service: str, as_they_should_be: Any) -> None:
    process, _ = check_report.SERVICES[service]
    with psycopg.connect(as_they_should_be(service).database_url) as connection:
        present = {(kind, name) for kind, name in connection.execute(OBJECTS)}

    named = {(part.kind, part.name) for part in read_objects(schema_file(process))}

    unnamed = {(kind, name) for kind, name in present - named if kind not in {"index", "sequence"}}
    assert named - present == set()
    assert {name for _, name in unnamed if "procrastinate_" not in name} == {"enqueue_task"}
    # Those of constraints and of identity columns have no statement of their own.
    constraints = {name.partition(" of ")[0] for kind, name in named if kind == "constraint"}
    indexes = {name for kind, name in present - named if kind == "index" and "procrastinate_" not in name}
    assert indexes <= constraints


def test_the_page_for_operators_lists_the_points_of_the_check() -> None:
    points = {check.point for _, checks in check_report.SERVICES.values() for check in checks}

    assert points | {"settings", "database"} == {*re.findall(r"^\| `(.+?)` \|", PAGE.read_text(), re.MULTILINE)} - PATHS


async def test_a_database_that_is_unreachable_does_not_hide_findings_of_other_points(tmp_path: Path) -> None:
    settings = unlimited_events("postgresql://ann:hunter2@127.0.0.1:1/events", tmp_path)
    settings = settings.model_copy(update={"secret_key": SECRET, "base_url": "http://events.example.com"})

    results, _ = await check_report.inspect("events", settings)

    by_point = {finding.point: finding for finding in results}
    assert by_point["database"].message.startswith("The database that EVENTS_DATABASE_URL names cannot be used: ")
    assert by_point["database"].remedy == (
        "PostgreSQL does not run there. Start it, and look in its log for why it has ended; a full disk is a common "
        "reason. If it runs elsewhere, correct the address in EVENTS_DATABASE_URL."
    )
    assert by_point["seats"].message == "Not looked at, because the database cannot be reached."
    assert "unencrypted" in " ".join(finding.message for finding in results if finding.point == "base address")
    assert by_point["data directory"].status == "ok"
    assert "hunter2" not in repr(results)


async def test_an_invalid_setting_of_one_service_is_found_and_the_other_service_is_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTS_BASE_URL", "events.example.com")
    monkeypatch.setenv("INVENTORY_DATABASE_URL", "postgresql://127.0.0.1:1/inventory")

    results = await check_report.find(("inventory", "events"))

    settings = next(finding for finding in results if (finding.service, finding.point) == ("events", "settings"))
    assert settings.message.startswith("EVENTS_BASE_URL must be an http or https address")
    assert settings.remedy.startswith("Correct these settings, in the environment of the service or in .env.")
    assert {finding.point for finding in results if finding.service == "inventory"} > {"settings", "database", "ledger"}


async def test_a_check_finds_settings_that_both_services_share_by_mistake(tmp_path: Path) -> None:
    both = {"secret_key": SECRET, "base_url": "https://holdfast.example.com"}
    events_settings = unlimited_events("postgresql://127.0.0.1:1/events", tmp_path).model_copy(update=both)
    stock_settings = unlimited_inventory("postgresql://127.0.0.1:1/inventory", tmp_path).model_copy(update=both)
    services = [await open_inspection(EVENTS, events_settings), await open_inspection(INVENTORY, stock_settings)]

    address, secret = check_report.compare(services)

    assert (address.status, address.message) == (
        "wrong",
        "EVENTS_BASE_URL and INVENTORY_BASE_URL are the same address.",
    )
    assert address.remedy.startswith("Give each an address of its own")
    assert (secret.status, secret.message) == (
        "warning",
        "Both services have the same secret: if it leaks, both are open.",
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
    text = await asyncio.to_thread(run_holdfast_in, tmp_path, "check", **environment)
    words = ("check", "--service", "events", "--point", "clock", "--json")
    as_json = await asyncio.to_thread(run_holdfast_in, tmp_path, *words, **environment)

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
