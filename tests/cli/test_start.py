"""A service that cannot start says the reason in one line, before it serves anything."""

from pathlib import Path

import psycopg
import pytest

from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from tests.helpers.command_line import run_holdfast_in
from tests.helpers.data_directories import scratch_directory, start_users, used_directory

PASSWORD = "hunter2hunter2"
SERVE = ("events", "serve", "--port", "0")


def refusal_line(*words: str, cwd: Path, **environment: str) -> str:
    """The line in which a command is refused."""
    done = run_holdfast_in(cwd, *words, **environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert PASSWORD[:5] not in done.stderr
    [line] = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("command", [SERVE, ("events", "worker"), ("events", "migrate"), ("events", "jobs")])
def test_a_database_that_does_not_answer_is_named_without_its_password(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    line = refusal_line(*command, cwd=tmp_path, EVENTS_DATABASE_URL=f"postgresql://ann:{PASSWORD}@127.0.0.1:1/events")

    assert line.startswith("Cannot use the database that EVENTS_DATABASE_URL names: ")
    assert "port 1 failed: Connection refused" in line


@pytest.mark.parametrize("command", [SERVE, ("events", "organizer", "list")])
def test_a_data_directory_that_cannot_be_looked_at_is_refused_in_one_line(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    line = refusal_line(*command, cwd=tmp_path, HOLDFAST_DATA_DIR="x" * 300, EVENTS_SECRET_KEY="")

    assert line.startswith("Cannot use the data directory ")
    assert "File name too long" in line


@pytest.mark.parametrize("place", ["a file", "a file/in it"])
@pytest.mark.parametrize("command", [SERVE, ("up", "--port", "0")])
def test_a_file_in_the_place_of_the_data_directory_is_called_a_file(
    command: tuple[str, ...], place: str, tmp_path: Path
) -> None:
    (tmp_path / "a file").touch()

    line = refusal_line(*command, cwd=tmp_path, HOLDFAST_DATA_DIR=place, EVENTS_SECRET_KEY="")

    assert line == (
        f"Cannot use the data directory {tmp_path / place}: Not a directory. Set HOLDFAST_DATA_DIR to a directory that "
        "this user may write to."
    )


@pytest.mark.parametrize("command", [SERVE, ("events", "worker"), ("events", "jobs"), ("events", "organizer", "list")])
def test_a_bundled_server_whose_connections_are_all_in_use_is_named_in_one_line(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    with used_directory() as directory, start_users(directory, "events") as [user]:
        with psycopg.connect(user.url, autocommit=True) as connection:
            connection.execute("alter database events connection limit 0")

        line = refusal_line(*command, cwd=tmp_path, HOLDFAST_DATA_DIR=str(directory), EVENTS_SECRET_KEY="")

    assert line.startswith("PostgreSQL takes no connection: ")
    assert 'too many connections for database "events". All connections of PostgreSQL are in use. See who' in line


def test_a_lost_secret_is_reported_and_not_replaced() -> None:
    directory = scratch_directory()
    added = run_holdfast_in(directory, "inventory", "shop", "add", "lost.myshopify.com")
    secret = directory / ".holdfast" / "inventory.secret"
    copy = secret.rename(directory / "kept")

    for command in (("inventory", "serve", "--port", "0"), ("inventory", "shop", "key", "lost.myshopify.com")):
        line = refusal_line(*command, cwd=directory)
        assert line.startswith(f"The file {secret} is missing, and only the secret in it opens some contents")
        assert not secret.exists()

    copy.rename(secret)
    key = run_holdfast_in(directory, "inventory", "shop", "key", "lost.myshopify.com")
    assert key.stdout.splitlines()[-1] == added.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://ann:{PASSWORD}@127.0.0.1/events",
        f"postgresql://ann:{PASSWORD} 2@127.0.0.1/events",
        f"postgresql://ann:x@{PASSWORD}@127.0.0.1/events",
        f"host=127.0.0.1 password={PASSWORD} two",
        "events",
    ],
)
def test_a_database_url_that_is_invalid_is_refused_with_an_example(url: str, tmp_path: Path) -> None:
    line = refusal_line(*SERVE, cwd=tmp_path, EVENTS_DATABASE_URL=url)

    assert line.startswith("EVENTS_DATABASE_URL must look like postgresql://user:password@host:5432/name")


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"EVENTS_SECRET_KEY": PASSWORD}, "EVENTS_SECRET_KEY must have 32 or more characters, and has 14."),
        ({"RATE_LIMIT_STORAGE_URL": f"redsi://:{PASSWORD}@host:1"}, "must be memory:// or look like redis://host:6379"),
        ({"RATE_LIMIT_STORAGE_URL": "redis://host:port"}, "must be memory:// or look like redis://host:6379"),
        ({"EVENTS_BASE_URL": "events.example.com"}, "EVENTS_BASE_URL must be an http or https address, such as"),
        ({"EVENTS_BASE_URL": "http://999.1.1.1:80"}, "EVENTS_BASE_URL must be an http or https address, such as"),
        ({"EVENTS_BASE_URL": "http://10.0.0"}, "EVENTS_BASE_URL must be an http or https address, such as"),
        ({"EVENTS_BASE_URL": "https://"}, "EVENTS_BASE_URL must be an http or https address, such as"),
        ({"EVENTS_BASE_URL": "https://events.example.com/?a=b"}, "EVENTS_BASE_URL must be an http or https address"),
        ({"CDN_BASE_URL": "cdn"}, "CDN_BASE_URL must be an http or https address"),
        ({"PLATFORM_FEE_PERCENT": "91"}, "PLATFORM_FEE_PERCENT must be at most 90."),
        ({"DATABASE_POOL_SIZE": "ten"}, "DATABASE_POOL_SIZE must be a whole number."),
        ({"HOLDFAST_LOG_LEVEL": "LOUD"}, "must be one of 'DEBUG', 'INFO', 'WARNING' or 'ERROR'."),
        ({"OAUTH_ISSUER": "https://a?b"}, "OAUTH_ISSUER must look like https://login.example.com"),
        ({"OAUTH_AUDIENCE": 'a"b'}, "OAUTH_AUDIENCE must have no quotes, backslashes and control characters."),
        ({"HOLDFAST_DATA_DIR": "/dev/null/here"}, "Cannot use the data directory /dev/null/here: Not a directory."),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_what_would_be_right(
    environment: dict[str, str], message: str, tmp_path: Path
) -> None:
    assert message in refusal_line(*SERVE, cwd=tmp_path, **environment)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("service", ["events", "inventory"])
@pytest.mark.parametrize("words", [("serve", "--port", "0"), ("worker",), ("jobs",)])
def test_a_database_url_without_a_secret_key_is_refused(service: str, words: tuple[str, ...], tmp_path: Path) -> None:
    name = service.upper()
    environment = {f"{name}_DATABASE_URL": "postgresql://127.0.0.1:1/shared", f"{name}_SECRET_KEY": ""}

    assert refusal_line(service, *words, cwd=tmp_path, **environment) == (
        f"{name}_DATABASE_URL is set and {name}_SECRET_KEY is not. Every process that uses the database needs the same "
        f"secret: set {name}_SECRET_KEY to 32 or more random characters."
    )
    assert list(tmp_path.iterdir()) == []


def test_a_secret_that_is_kept_in_a_file_is_measured_too(tmp_path: Path) -> None:
    (tmp_path / "inventory.secret").write_text("short")

    line = refusal_line("inventory", "serve", "--port", "0", cwd=tmp_path, HOLDFAST_DATA_DIR=str(tmp_path))

    assert "has 5 characters; it needs 32 or more" in line


@pytest.mark.parametrize("port", ["-1", "65536", "700000"])
def test_a_port_that_does_not_exist_is_refused(port: str, tmp_path: Path) -> None:
    message = f"Cannot listen on port {port}: a port is a number from 1 to 65535, or 0 for any free one."

    assert refusal_line("events", "serve", f"--port={port}", cwd=tmp_path) == message
    assert message in refusal_line("up", f"--inventory-port={port}", "--events-port=0", cwd=tmp_path)


@pytest.mark.parametrize("host", ["nowhere.invalid", "a" * 70, "999.1.1.1", "[::1", "::zz", "a b", "a/b", "a\tb"])
def test_a_host_that_does_not_exist_is_refused(host: str, tmp_path: Path) -> None:
    assert refusal_line(*SERVE, "--host", host, cwd=tmp_path).startswith(f"Cannot listen on {host} port 0: ")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *(("EVENTS_DATABSE_URL", "EVENTS_DATABASE_URL"), ("EVENT_SECRET_KEY", "EVENTS_SECRET_KEY")),
        *(("PLATFORM_FEE", "PLATFORM_FEE_PERCENT"), ("api_photo_rate_limit", "API_PHOTO_UPLOAD_RATE_LIMIT")),
        *(("TRUSTED_PROXY", "TRUSTED_PROXIES"), ("HOLDFAST_DATADIR", "HOLDFAST_DATA_DIR")),
    ],
)
def test_a_misspelt_setting_in_the_env_file_is_named_with_the_one_that_is_meant(
    name: str, meant: str, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(f"{name}={PASSWORD}\n")

    line = refusal_line(*SERVE, cwd=tmp_path)

    assert line.startswith(f"Unknown in .env: {name.upper()} (did you mean {meant}?).")


def test_a_setting_that_never_was_one_is_named_if_it_says_that_it_is_ours(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("HOLDFAST_COLOUR=blue\n")

    assert refusal_line(*SERVE, cwd=tmp_path).startswith("Unknown in .env: HOLDFAST_COLOUR.")


def test_the_env_file_may_have_the_settings_of_both_services_and_of_other_programs(tmp_path: Path) -> None:
    both = {str(field.validation_alias) for of in (EVENTS, INVENTORY) for field in of.settings.model_fields.values()}
    others = ["AWS_SECRET_ACCESS_KEY", "POSTGRES_PASSWORD", "DATABASE_URL", "SECRET_KEY", "PORT", "REDIS_URL"]
    lines = [f"{name}=" for name in both if name.endswith("_URL") and not name.startswith("RATE")]
    (tmp_path / ".env").write_text("\n".join([*lines, "MCP_RATE_LIMIT=1", *(f"{name}=x" for name in others)]))

    for service in ("events", "inventory"):
        assert "There is no" in refusal_line(service, "jobs", cwd=tmp_path)


def test_variables_of_other_programs_are_not_taken_for_settings(tmp_path: Path) -> None:
    done = run_holdfast_in(tmp_path, "events", "jobs", DATABASE_URL="mysql://elsewhere", SECRET_KEY="x", BASE_URL="y")

    assert done.stderr.startswith("There is no events database in the data directory")
