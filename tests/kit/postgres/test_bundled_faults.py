"""The bundled server starts again after every fault, and loses no data."""

import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from holdfast.inventory.service import INVENTORY
from holdfast.kit.postgres.bundled import database_url
from holdfast.kit.postgres.bundled_server import SUPERUSER, CannotRun, Cluster
from tests.helpers.data_directories import (
    DatabaseUser,
    can_connect,
    data_directory,
    postmaster,
    query_value,
    server,
    start_users,
    used_directory,
    wait_until,
)

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))


@pytest.fixture
def directory() -> Iterator[Path]:
    """Where a server has run before."""
    with used_directory() as directory:
        yield directory


@pytest.fixture
def empty() -> Iterator[Path]:
    with data_directory() as directory:
        yield directory


def kill_server(data_dir: Path) -> None:
    os.kill(postmaster(data_dir), signal.SIGKILL)


def with_data(data_dir: Path) -> None:
    """Store something in the directory, and leave it as a crash of the machine does: nothing runs, the files stay."""
    with start_users(data_dir, "events") as (user,):
        with psycopg.connect(user.url) as connection:
            connection.execute("create table shelf as select 7 as pages")
        first = postmaster(data_dir)
        # Its file stays; the process that could start it again does not.
        user.kill()
        os.kill(first, signal.SIGKILL)


def test_a_server_that_was_killed_is_started_again_by_one_of_its_users(directory: Path) -> None:
    with start_users(directory, "events", "inventory") as (one, two):
        before = server(one.url)
        kill_server(directory)

        wait_until(lambda: can_connect(one.url))

        assert server(one.url) == server(two.url)
        assert server(one.url) != before
        DatabaseUser.end(one)
        assert can_connect(two.url)
        DatabaseUser.end(two)
        assert not can_connect(two.url)


def test_a_server_that_cannot_start_is_tried_until_it_can(directory: Path) -> None:
    control = directory / "postgres" / "global" / "pg_control"
    log = directory / "postgres.log"
    with start_users(directory, "events") as (user,):
        aside = control.rename(directory / "pg_control")
        kill_server(directory)

        wait_until(lambda: "could not find the database system" in log.read_text())
        aside.rename(control)

        wait_until(lambda: can_connect(user.url))
        DatabaseUser.end(user)


def test_a_process_that_has_got_the_number_of_a_dead_server_is_left_alone(directory: Path) -> None:
    with_data(directory)
    owner = (directory / "postgres").stat().st_uid
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, user=owner) as stranger:
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            file = directory / "postgres" / name
            file.write_text(re.sub(r"\A\d+", str(stranger.pid), file.read_text()))

        with start_users(directory, "events") as (user,):
            assert query_value(user.url, "select pages from shelf") == 7
            DatabaseUser.end(user)

        assert stranger.poll() is None
        stranger.communicate(timeout=60)
        assert stranger.returncode == 0


@pytest.mark.parametrize("content", ["", "12", "12345678\n/some", "nonsense\n\n\n"])
def test_a_file_that_was_half_written_does_not_hold_up_the_next_start(directory: Path, content: str) -> None:
    with_data(directory)
    (directory / "postgres" / "postmaster.pid").write_text(content)

    with start_users(directory, "events") as (user,):
        assert query_value(user.url, "select pages from shelf") == 7
        DatabaseUser.end(user)


def test_a_first_start_that_was_interrupted_is_begun_again(empty: Path) -> None:
    user = DatabaseUser(empty, "events")
    user.go()
    wait_until(lambda: any(empty.glob("postgres*/PG_VERSION")))
    user.kill()
    user.close()

    with start_users(empty, "events") as (second,):
        assert query_value(second.url, "select 1") == 1
        DatabaseUser.end(second)
    assert [path.name for path in empty.iterdir() if path.is_dir()] == ["postgres"]


def test_files_that_no_server_ever_used_are_put_aside(empty: Path) -> None:
    half = empty / "postgres"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")

    with start_users(empty, "events") as (user,):
        assert query_value(user.url, "select 1") == 1
        DatabaseUser.end(user)

    [aside] = empty.glob("postgres.unfinished-*")
    assert [path.name for path in aside.iterdir()] == ["PG_VERSION"]


def test_files_that_are_damaged_are_kept_and_the_start_says_what_is_wrong(directory: Path) -> None:
    with_data(directory)
    control = directory / "postgres" / "global" / "pg_control"
    copy = control.rename(directory / "pg_control")

    with pytest.raises(CannotRun, match=r"does not start in .*pg_control"):
        Cluster(directory / "postgres", directory / "postgres.log").start()

    copy.rename(control)
    with start_users(directory, "events") as (user,):
        assert query_value(user.url, "select pages from shelf") == 7
        DatabaseUser.end(user)


def test_a_path_that_does_not_fit_the_socket_is_refused_in_one_line(empty: Path) -> None:
    deep = empty / ("d" * 90)
    with pytest.raises(CannotRun, match="has a comma"):
        database_url(empty / "one, two", "events")

    started = subprocess.run(
        [HOLDFAST, "events", "serve", "--port", "0"],
        env={**os.environ, "HOLDFAST_DATA_DIR": str(deep), "EVENTS_DATABASE_URL": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert started.returncode == 1
    assert re.fullmatch(
        rf"The path {deep} is \d+ bytes too long: the socket of PostgreSQL would not fit\. "
        r"Set HOLDFAST_DATA_DIR to a shorter path, and move existing data there while nothing uses it\.\n",
        started.stderr,
    )


def test_the_bundled_server_is_reachable_by_its_owner_only_and_the_service_is_no_superuser(directory: Path) -> None:
    with start_users(directory, "events") as (user,):
        socket = Path(str(conninfo_to_dict(user.url)["host"])) / ".s.PGSQL.5432"
        assert stat.S_IMODE(socket.stat().st_mode) == 0o700
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        assert (
            query_value(user.url, "select rolsuper or rolcreatedb or rolbypassrls from pg_roles where rolname = user")
            is False
        )
        assert (
            query_value(
                user.url, "select count(*) from pg_stat_activity where usename = 'postgres' and client_port is not null"
            )
            == 0
        )
        DatabaseUser.end(user)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_concurrent_processes_of_root_create_the_user_of_the_server_once() -> None:
    name = f"holdfast{os.getpid()}"
    server = "from holdfast.kit.postgres import bundled_server as server"
    program = f"{server}; server.USER = {name!r}; print(server._server_user().user)"
    try:
        together = [
            subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(6)
        ]
        users = [process.communicate(timeout=60)[0].strip() for process in together]
        assert users == [str(pwd.getpwnam(name).pw_uid)] * 6
    finally:
        subprocess.run(["userdel", name], check=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_root_may_use_a_directory_that_is_closed_to_others_and_it_stays_closed(empty: Path) -> None:
    if subprocess.run(["unshare", "--user", "--map-user=70", "true"], check=False).returncode:
        pytest.skip("this system has no user namespaces")
    closed = empty / "closed"
    closed.mkdir(mode=0o700)

    with start_users(closed / "data", "events") as (user,):
        assert query_value(user.url, "select current_user") == "holdfast"
        DatabaseUser.end(user)
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_a_closed_directory_is_named_where_user_namespaces_are_missing(empty: Path) -> None:
    closed = empty / "closed"
    closed.mkdir(mode=0o700)
    without = {**os.environ, "PATH": "", "HOLDFAST_DATA_DIR": str(closed / "data")}

    command = [sys.executable, "-m", "holdfast", "inventory", "migrate"]
    refusal = subprocess.run(command, env=without, capture_output=True, text=True, check=False)

    assert refusal.returncode == 1
    assert f"may not enter {closed}. Set HOLDFAST_DATA_DIR to a directory in a place" in refusal.stderr
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_a_database_that_the_superuser_made_for_an_earlier_release_is_given_to_the_service(empty: Path) -> None:
    cluster = Cluster(empty / "postgres", empty / "postgres.log")
    cluster.make()
    cluster.start()
    with psycopg.connect(cluster.url(SUPERUSER, "postgres"), autocommit=True) as connection:
        connection.execute("create database inventory")
    INVENTORY.migrate(cluster.url(SUPERUSER, "inventory"))
    cluster.stop()

    with start_users(empty, "inventory") as (user,):
        assert query_value(user.url, "select user") == "holdfast"
        assert query_value(user.url, "select count(*) from shops") == 0
        assert query_value(user.url, "select set_config('role', 'holdfast_shop', false)") == "holdfast_shop"
        owners = (
            "select count(*) from pg_class where relnamespace = 'public'::regnamespace and relowner <> user::regrole"
        )
        assert query_value(user.url, owners) == 0
        with psycopg.connect(user.url) as connection:
            connection.execute("alter table shops add column note text")
        assert INVENTORY.pending(user.url) == []
        DatabaseUser.end(user)


def test_a_path_with_a_space_and_other_signs_works(empty: Path) -> None:
    with start_users(empty / "my data & 100%", "events") as (user,):
        assert query_value(user.url, "select 1") == 1
        DatabaseUser.end(user)
    shutil.rmtree(empty / "my data & 100%")
