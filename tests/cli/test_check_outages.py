"""`holdfast check` says why PostgreSQL accepts no connection or no change, and names the remedy."""

import contextlib
import socket
import ssl
import subprocess
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import LiteralString

import psutil
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from holdfast.events.service import EVENTS
from holdfast.kit.postgres.bundled_server import SUPERUSER, Cluster
from tests.helpers.certificates import Authority
from tests.helpers.command_line import run_holdfast_in
from tests.helpers.data_directories import data_directory, start_users, used_directory, wait_until
from tests.helpers.processes import port_that_stays_free, running_processes
from tests.helpers.small_disks import small_disk


@pytest.fixture
def postgres() -> Iterator[Cluster]:
    """A server that nobody starts again but the test."""
    with used_directory() as directory, cluster_in(directory) as cluster:
        cluster.start()
        yield cluster


@contextlib.contextmanager
def cluster_in(directory: Path) -> Generator[Cluster]:
    cluster = Cluster(directory / "postgres", directory / "postgres.log")
    cluster.make()
    try:
        yield cluster
    finally:
        cluster.stop()


def check(directory: Path, url: str, *points: str, **environment: str) -> str:
    """What is report in one line, without the ends of printed lines."""
    words = [word for point in points for word in ("--point", point)]
    done = run_holdfast_in(
        directory, "check", "--service", "events", *words, EVENTS_DATABASE_URL=url, COLUMNS="100", **environment
    )
    assert done.stderr == ""
    return " ".join(done.stdout.split())


def fill(directory: Path) -> Path:
    """A file that takes all room of a disk."""
    file = directory / "filling"
    subprocess.run(["dd", "if=/dev/zero", f"of={file}", "bs=64k"], capture_output=True, check=False)
    return file


def test_a_full_disk_of_postgresql_is_found_and_the_end_that_it_brings_is_not_taken_for_a_password(
    tmp_path: Path,
) -> None:
    with data_directory() as directory, small_disk(directory, "300m"), cluster_in(directory) as cluster:
        cluster.start()
        url = cluster.url(SUPERUSER, "postgres")
        EVENTS.migrate(url)
        assert "✓ disk PostgreSQL can write files." in check(tmp_path, url, "disk")

        filling = fill(directory)
        full = check(tmp_path, url, "disk")
        assert "✗ disk The disk of PostgreSQL is full, so changes are refused with 503: " in full
        assert "No space left on device. → Make the disk larger" in full

        cluster.stop()
        ended = check(tmp_path, url, "disk")
        assert "PostgreSQL does not run there. Start it, and look in its log for why it has ended; a full disk" in ended
        assert "password" not in ended
        filling.unlink()


def test_a_full_data_directory_is_not_taken_for_the_directory_of_another_service() -> None:
    with data_directory() as directory, small_disk(directory, "300m"), start_users(directory, "events") as [user]:
        EVENTS.migrate(user.url)
        for cached in (directory / "postgres").rglob("pg_internal.init"):
            cached.unlink()  # as PostgreSQL does after a change of the schema; the next session writes it again
        fill(directory)

        report = check(directory, "", "database", HOLDFAST_DATA_DIR=str(directory))

    assert f"✗ database The database in the data directory {directory} cannot be used: " in report
    assert "No space left on device. → Make room on the disk of PostgreSQL" in report
    assert "HOLDFAST_DATA_DIR" not in report


def test_a_full_connection_limit_of_a_data_directory_is_not_reported_as_another_directory() -> None:
    with data_directory() as directory, start_users(directory, "events") as [user]:
        EVENTS.migrate(user.url)
        with psycopg.connect(user.url, autocommit=True) as connection:
            connection.execute("alter database events connection limit 0")

        report = check(directory, "", "database", HOLDFAST_DATA_DIR=str(directory))

    assert "→ All connections of PostgreSQL are in use." in report
    assert "HOLDFAST_DATA_DIR" not in report


def without_role(url: str) -> str:
    return make_conninfo(url, user="nobody_of_this_name")


def without_database(url: str) -> str:
    return make_conninfo(url, dbname="no_such_database")


def without_host(url: str) -> str:
    return make_conninfo(url, host="postgres.invalid")


def without_server(url: str) -> str:
    return make_conninfo(url, host="127.0.0.1", port=str(port_that_stays_free()))


def with_several_servers(url: str) -> str:
    return make_conninfo(url, host="127.0.0.1,127.0.0.1", port=f"{port_that_stays_free()},1")


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        (without_role, "Correct the user and the password in EVENTS_DATABASE_URL"),
        (
            without_database,
            "Correct the name of the database in EVENTS_DATABASE_URL, or make",
        ),
        (without_host, "Correct the host in EVENTS_DATABASE_URL, or look at DNS on this machine."),
        (without_server, "PostgreSQL does not run there. Start it"),
        (with_several_servers, "PostgreSQL does not run there. Start it"),
    ],
)
def test_a_check_names_a_remedy_for_the_cause_of_a_failed_connection(
    change: Callable[[str], str], remedy: str, postgres: Cluster, tmp_path: Path
) -> None:
    url = change(postgres.url(SUPERUSER, "postgres"))

    report = check(tmp_path, url, "clock")
    started = run_holdfast_in(tmp_path, "events", "migrate", EVENTS_DATABASE_URL=url)

    assert remedy in report
    assert remedy in started.stderr
    assert ".." not in report
    assert ":." not in report


def test_a_full_connection_limit_is_not_reported_as_a_wrong_password(postgres: Cluster, tmp_path: Path) -> None:
    url = postgres.url(SUPERUSER, "postgres")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create role ann login connection limit 0")

    report = check(tmp_path, make_conninfo(url, user="ann"), "clock")

    assert "All connections of PostgreSQL are in use. See who has them, as a superuser" in report
    assert "raise max_connections" in report
    assert "password" not in report


@pytest.mark.parametrize(
    ("right", "remedy"),
    [
        ("createrole", "→ Run: holdfast inventory migrate, which makes it."),
        (
            "nocreaterole",
            "→ As a user with CREATEROLE, run: create role holdfast_shop nologin; grant holdfast_shop to ann;",
        ),
    ],
)
def test_the_role_of_shops_is_made_by_the_first_migration_of_a_user_who_may(
    right: LiteralString, remedy: str, postgres: Cluster, tmp_path: Path
) -> None:
    with psycopg.connect(postgres.url(SUPERUSER, "postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("create role ann login {}").format(sql.SQL(right)))
        connection.execute("create database stock owner ann")
    url = postgres.url("ann", "stock")

    done = run_holdfast_in(
        tmp_path, "check", "--service=inventory", "--point=rights", INVENTORY_DATABASE_URL=url, COLUMNS="200"
    )

    assert "✗ rights The role holdfast_shop is missing: every request of a shop fails. " + remedy in " ".join(
        done.stdout.split()
    )


def test_a_database_with_another_encoding_and_a_user_without_rights_are_reported_by_their_names(
    postgres: Cluster, tmp_path: Path
) -> None:
    with psycopg.connect(postgres.url(SUPERUSER, "postgres"), autocommit=True) as connection:
        connection.execute("create role ann login")
        connection.execute("create role holdfast_shop nologin")
        connection.execute("create database stock encoding 'SQL_ASCII' locale 'C' template template0")
    with psycopg.connect(postgres.url(SUPERUSER, "stock"), autocommit=True) as connection:
        connection.execute("create table pools ()")

    done = run_holdfast_in(
        tmp_path,
        *("check", "--service=inventory", "--point=server", "--point=rights"),
        INVENTORY_DATABASE_URL=postgres.url("ann", "stock"),
        COLUMNS="200",
    )

    report = " ".join(done.stdout.split())
    assert "✗ server The database has the encoding SQL_ASCII: texts in many languages cannot be stored." in report
    assert (
        "✗ rights The user ann may not make tables, so migrations fail. → As the owner of the database, run: " in report
    )
    assert "✗ rights The table pools does not belong to the user ann, so migrations fail." in report
    assert "✗ rights The user ann is not a member of the role holdfast_shop: every request of a shop fails." in report


def test_a_server_that_is_about_to_end_is_waited_for(postgres: Cluster, tmp_path: Path) -> None:
    url = postgres.url(SUPERUSER, "postgres")
    with psycopg.connect(url):
        number = int((postgres.directory / "postmaster.pid").read_text().split()[0])
        subprocess.run(["kill", "-TERM", str(number)], check=True)
        wait_until(lambda: "database system" in check(tmp_path, url, "clock"))
        report = check(tmp_path, url, "clock")

    assert "Wait until it has started. If that lasts, look in its log" in report


def test_a_postgresql_that_stands_still_is_not_taken_for_a_network_alone(postgres: Cluster, tmp_path: Path) -> None:
    url = make_conninfo(postgres.url(SUPERUSER, "postgres"), connect_timeout=2)
    postmaster = psutil.Process(int((postgres.directory / "postmaster.pid").read_text().split()[0]))
    postmaster.suspend()
    try:
        report = check(tmp_path, url, "clock")
        screen = run_holdfast_in(tmp_path, "status", "--service=events", EVENTS_DATABASE_URL=url)
    finally:
        postmaster.resume()

    for text in (report, " ".join(screen.stdout.split())):
        assert "timeout expired. " in text
        assert "whether PostgreSQL stands still: its disk does not answer, or its processes are suspended." in text
        assert "the network and the firewall" in text


@pytest.mark.parametrize("is_set", [True, False])
def test_an_unknown_certificate_authority_is_reported_with_the_known_ones(
    postgres: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_set: bool
) -> None:
    url = postgres.url(SUPERUSER, "postgres")
    EVENTS.migrate(url)
    others = tmp_path / "others.pem"
    others.write_bytes(Authority(tmp_path).pem)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    environment = {"SSL_CERT_FILE": str(others)} if is_set else {}
    context = Authority(tmp_path).issue("127.0.0.1")
    with (
        running_processes(url, tmp_path, 1),
        socket.create_server(("127.0.0.1", 0)) as listener,
        ThreadPoolExecutor() as thread,
    ):
        wait_until(lambda: "no process of the service runs" not in check(tmp_path, url, "leaders"), seconds=30)
        thread.submit(refused_handshake, listener, context)
        address = f"https://127.0.0.1:{listener.getsockname()[1]}"
        report = check(tmp_path, url, "base address", EVENTS_BASE_URL=address, **environment)

    assert f"✗ base address {address} cannot be reached from here" in report
    known = f"set to {others}" if is_set else "not set"
    assert f"see SSL_CERT_FILE in docs/deploy/one-machine.md. It is {known} here." in report


def refused_handshake(listener: socket.socket, context: ssl.SSLContext) -> None:
    """Show a client a certificate, which it refuses."""
    listener.settimeout(20)
    with contextlib.suppress(OSError):
        connection, _ = listener.accept()
        with connection:
            context.wrap_socket(connection, server_side=True)


def test_a_database_that_is_unreachable_does_not_make_the_check_say_that_no_process_runs(
    postgres: Cluster, tmp_path: Path
) -> None:
    url = postgres.url(SUPERUSER, "postgres")
    EVENTS.migrate(url)
    address = f"http://127.0.0.1:{port_that_stays_free()}"
    with running_processes(url, tmp_path, 1, base_url=address):
        postgres.stop()
        running = check(tmp_path, url, "base address", EVENTS_BASE_URL=address)
    ended = check(tmp_path, url, "base address", EVENTS_BASE_URL=address)

    assert f"✓ base address Holdfast Events answers at {address}." in running
    assert "because nothing of the service answers there, and the database, which knows its processes, is away" in ended
    assert "no process of the service runs" not in running + ended
