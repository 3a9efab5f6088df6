"""The configurations of proxies in `deploy` work in front of real processes, with TLS."""

import os
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.kit.contract.problems import NOT_FOUND, SERVICE_UNAVAILABLE
from tests.docs.proxies import (
    DEPLOY,
    HOSTS,
    PROXY_ADDRESS,
    DownProcess,
    Proxy,
    Services,
    data_of,
    fill_configuration,
    is_listening,
    nginx,
)
from tests.helpers.certificates import Authority
from tests.helpers.data_directories import wait_until
from tests.helpers.databases import clone
from tests.helpers.events_service import event_fields
from tests.helpers.installed_programs import program
from tests.helpers.pictures import picture
from tests.helpers.processes import Process, port_that_stays_free

PRIVATE_PATHS = ("/metrics", "/readyz", "/healthz")
PAGES_ABOVE_OTHERS = ("/", "/console", "/account", "/organizers", "/events", "/sign-in")
BIG_UPLOAD_BYTES = 4_000_000
KEY = "hf_" + 43 * "x"
"""A key that is looked up in the database."""

OUTAGE_SECONDS = 4.0
"""Seconds that a database is away: the balancers ask every second, and HAProxy believes the second answer."""


@pytest.fixture(scope="module")
def services(
    template_url: str, inventory_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Services]:
    with (
        pytest.MonkeyPatch.context() as environment,
        clone(template_url) as events_url,
        clone(inventory_template) as inventory_url,
    ):
        environment.setenv("TRUSTED_PROXIES", PROXY_ADDRESS)
        environment.setenv("MAX_STREAMS_PER_ADDRESS", "1")
        events = Process(events_url, tmp_path_factory.mktemp("events"))
        inventory = Process(inventory_url, tmp_path_factory.mktemp("inventory"), service="inventory")
        yield Services(events, inventory, events_url)
        events.kill()
        inventory.kill()


def haproxy(services: Services, directory: Path, port: int, certificate: Path) -> list[str]:
    changes = {
        "bind :80\n": f"bind {PROXY_ADDRESS}:{port_that_stays_free()}\n",
        "bind :443 ": f"bind {PROXY_ADDRESS}:{port} ",
        "/etc/haproxy/certificates/": str(certificate),
    }
    file = directory / "haproxy.cfg"
    file.write_text(fill_configuration((DEPLOY / "haproxy/haproxy.cfg").read_text(encoding="utf-8"), services, changes))
    return [program("haproxy"), "-f", str(file)]


def caddy(services: Services, directory: Path, port: int, certificate: Path) -> list[str]:
    changes = {
        "\n{\n\tservers": "\n{\n\tadmin off\n\tauto_https disable_redirects\n\tservers",
        **{f"\n{name} {{": f"\nhttps://{name}:{port} {{\n\ttls {certificate} {certificate}" for name in HOSTS.values()},
    }
    file = directory / "Caddyfile"
    file.write_text(fill_configuration((DEPLOY / "caddy/Caddyfile").read_text(encoding="utf-8"), services, changes))
    return [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(file)]


Configuration = Callable[[Services, Path, int, Path], list[str]]
PROXIES: list[Configuration] = [haproxy, nginx, caddy]


@pytest.fixture(params=PROXIES, ids=lambda param: param.__name__)
def proxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Proxy]:
    program(request.param.__name__)  # before the services are started
    with run_proxy(request.param, request.getfixturevalue("services"), tmp_path) as proxy:
        yield proxy


@pytest.fixture(params=PROXIES, ids=lambda param: param.__name__)
def lonely_proxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Proxy]:
    """A proxy in front of services of which no process runs."""
    program(request.param.__name__)
    down = DownProcess(f"http://{PROXY_ADDRESS}:{port_that_stays_free()}")
    with run_proxy(request.param, Services(down, down), tmp_path) as proxy:
        yield proxy


@contextmanager
def run_proxy(configuration: Configuration, services: Services, tmp_path: Path) -> Generator[Proxy]:
    """A proxy that runs by its configuration."""
    authority, port = Authority(tmp_path), port_that_stays_free()
    authority.issue(*HOSTS.values())
    believed = tmp_path / "authority.pem"
    believed.write_bytes(authority.pem)
    command = configuration(services, tmp_path, port, tmp_path / "server.pem")
    with (tmp_path / "proxy.log").open("w") as log:
        environment = {**os.environ, "HOME": str(tmp_path)}
        running = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=tmp_path)
    try:
        wait_until(lambda: running.poll() is not None or is_listening(port))
        assert running.poll() is None, (tmp_path / "proxy.log").read_text()
        address = f"127.0.1.{PROXIES.index(configuration) + 1}"
        yield Proxy(services, port, address, authority.believed(), believed)
    finally:
        running.terminate()
        running.wait(timeout=30)


def answers_of_pages(client: httpx2.Client) -> list[tuple[int, str | None]]:
    """The status of each page that others are below, and where it leads to."""
    answers = [client.get(path) for path in PAGES_ABOVE_OTHERS]
    return [(answer.status_code, answer.headers.get("Location")) for answer in answers]


def test_a_proxy_leads_to_the_services_by_its_configuration(proxy: Proxy) -> None:
    with proxy.client("events") as client:
        organizer = {"name": "Ada Events", "email": f"ada{proxy.port}@example.com", "slug": f"ada-{proxy.port}"}
        made = data_of(client.post("/api/organizers/register", json={"organizer": organizer}), 201)
        client.headers["X-API-Key"] = made["api_key"]["key"]
        event = data_of(client.post("/api/events", json={"event": event_fields()}), 201)

        with client.stream("GET", f"/events/{event['id']}/stream") as stream:
            assert stream.status_code == 200
            chunks = stream.iter_text()
            before = next(chunk for chunk in chunks if "event: " in chunk)
            registration = {"event_id": event["id"], "email": "ben@example.com"}
            accepted = client.post("/api/registrations", json={"registration": registration})
            assert accepted.status_code == 202
            # No more than this message is sent, so a proxy that waits for more would let the client wait in vain.
            after = next(chunk for chunk in chunks if "event: " in chunk)
            assert before != after
            # The service counts the streams of the client's address, not those of the proxy or of what the client says.
            assert client.get(f"/events/{event['id']}/stream").status_code == 429
            with (
                proxy.client("events", "127.0.2.1") as other,
                other.stream("GET", f"/events/{event['id']}/stream") as second,
            ):
                assert second.status_code == 200
        assert data_of(client.get(accepted.json()["next"]["url"]), 200)["status"] == "registered"

        photo = picture("image/png", 1160, 1160, compress_level=0)
        assert len(photo) > BIG_UPLOAD_BYTES
        photo_fields = {"content_type": "image/png", "content_length": len(photo)}
        upload = httpx2.URL(data_of(client.post("/api/uploads/presign", json=photo_fields), 201)["upload_url"])
        headers = {"Content-Type": "image/png"}
        assert client.put(upload.raw_path.decode(), content=photo, headers=headers).status_code < 300

        assert [client.get(path).status_code for path in PRIVATE_PATHS] == [404, 404, 404]

    for service in HOSTS:
        with (
            proxy.client(service) as client,
            httpx2.Client(base_url=getattr(proxy.services, service).url) as direct_client,
        ):
            assert answers_of_pages(client) == answers_of_pages(direct_client)

    with proxy.client("inventory") as client:
        assert client.get("/.well-known/mcp.json").status_code == 200
        assert [client.get(path).status_code for path in PRIVATE_PATHS] == [404, 404, 404]

    name = HOSTS["events"]
    url = f"https://{name}:{proxy.port}/.well-known/mcp.json"
    options = ["--silent", "--output", os.devnull, "--cacert", str(proxy.certificate), "--write-out"]
    resolved = f"{name}:{proxy.port}:{PROXY_ADDRESS}"
    command = [program("curl"), *options, "%{http_version} %{http_code}", "--resolve", resolved, url]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == "2 200"


def test_a_proxy_without_a_process_answers_programs_as_the_services_do_and_browsers_with_a_page(
    lonely_proxy: Proxy,
) -> None:
    for service in HOSTS:
        with lonely_proxy.client(service) as client:
            answers = [
                client.get("/api/events", headers={"Accept": "application/json"}),
                client.get("/api/events", headers={"Accept": "text/html"}),
                client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}),
                client.delete("/api/events/1"),
            ]
            for answer in answers:
                body = answer.json()
                assert (answer.status_code, body["code"]) == (503, "service_unavailable")
                assert body.keys() == SERVICE_UNAVAILABLE(retry_after=5).body().keys()
                assert answer.headers["Retry-After"] == str(body["retry_after"])
                assert answer.headers.get_list("Content-Type") == ["application/json"]
                assert answer.headers["Cache-Control"] == "no-store"

            page = client.get("/events/1", headers={"Accept": "text/html,application/xhtml+xml"})
            assert (page.status_code, page.headers["Content-Type"].partition(";")[0]) == (503, "text/html")
            assert "This page is not available right now" in page.text
            assert "Diese Seite ist gerade nicht erreichbar" in page.text
            assert page.headers["Retry-After"] == "5"

            private = client.get("/readyz")
            assert (private.status_code, private.json()) == (404, NOT_FOUND().body())


@contextmanager
def database_away(url: str) -> Generator[None]:
    """While the block lasts, a database takes no connections."""
    name = sql.Identifier(str(conninfo_to_dict(url)["dbname"]))
    allow = sql.SQL("alter database {} allow_connections {}")
    with psycopg.connect(make_conninfo(url, dbname="postgres"), autocommit=True) as connection:
        connection.execute(allow.format(name, sql.SQL("false")))
        try:
            connection.execute(
                # Not a process of PostgreSQL itself that cleans up there: that would need a superuser.
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and usename = current_user",
                [name.as_string()[1:-1]],
            )
            yield
        finally:
            connection.execute(allow.format(name, sql.SQL("true")))


def test_a_proxy_passes_on_what_a_service_says_for_as_long_as_its_database_is_away(proxy: Proxy) -> None:
    def answer() -> httpx2.Response:
        return client.get("/api/events", headers={"X-API-Key": KEY, "Accept": "text/html"})

    with proxy.client("events") as client:
        with database_away(proxy.services.events_database):
            wait_until(lambda: answer().status_code == 503)
            away = time.monotonic()
            while time.monotonic() < away + OUTAGE_SECONDS:
                refusal = answer()
                assert (refusal.status_code, refusal.json()["code"]) == (503, "service_unavailable")
                assert refusal.json()["error"] == "The database cannot be reached right now."
                assert refusal.headers["Retry-After"] == str(refusal.json()["retry_after"])
                time.sleep(0.02)
        wait_until(lambda: answer().status_code == 401)
