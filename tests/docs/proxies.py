"""Proxies with the configurations of `deploy/`, in front of a process of each service."""

import os
import socket
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2

from tests.helpers.installed_programs import program
from tests.helpers.processes import Process, port_that_stays_free

DEPLOY = Path(__file__).parents[2] / "deploy"

HOSTS = {"events": "events.example.com", "inventory": "inventory.example.com"}

PROXY_ADDRESS = "127.0.0.1"


class Services(NamedTuple):
    """A process of each service that trusts the proxies.

    events_database    the URL of the database of the events service
    """

    events: "Process | DownProcess"
    inventory: "Process | DownProcess"
    events_database: str = ""


class Proxy(NamedTuple):
    """A proxy in front of the services.

    address    the address of its clients, which no other proxy's clients have
    """

    services: Services
    port: int
    address: str
    trusted: ssl.SSLContext
    certificate: Path

    @contextmanager
    def client(self, service: str, address: str = "") -> Generator[httpx2.Client]:
        """A client of a service that reaches it through the proxy, from an address of this machine."""
        transport = httpx2.HTTPTransport(verify=self.trusted, local_address=address or self.address)
        with httpx2.Client(
            transport=_NamedTransport(HOSTS[service], transport),
            base_url=f"https://{PROXY_ADDRESS}:{self.port}",
            headers={"Host": HOSTS[service], "X-Forwarded-For": "192.0.2.1"},
            timeout=10,
        ) as client:
            yield client


class _NamedTransport(httpx2.BaseTransport):
    """Asks for the certificate of a name, which leads nowhere here."""

    def __init__(self, name: str, transport: httpx2.BaseTransport) -> None:
        self._name, self._transport = name, transport

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.extensions = {**request.extensions, "sni_hostname": self._name}
        return self._transport.handle_request(request)

    def close(self) -> None:
        self._transport.close()


def fill_configuration(text: str, services: Services, changes: dict[str, str]) -> str:
    """A configuration with the first process of each service at its address, and the second one down."""
    down = f"{PROXY_ADDRESS}:{port_that_stays_free()}"
    for service, port in (("events", 8002), ("inventory", 8001)):
        address = getattr(services, service).url.removeprefix("http://")
        changes = {f"10.0.0.11:{port}": address, f"10.0.0.12:{port}": down, **changes}
    for printed, replacement in changes.items():
        assert printed in text, printed
        text = text.replace(printed, replacement)
    return text


def nginx(services: Services, directory: Path, port: int, certificate: Path) -> list[str]:
    names = [f"/etc/nginx/holdfast/{service}{end}.pem" for service in HOSTS for end in ("-key", "")]
    changes = {
        "listen 80;": f"listen {PROXY_ADDRESS}:{port_that_stays_free()};",
        "listen 443 ": f"listen {PROXY_ADDRESS}:{port} ",
        "/var/cache/holdfast": f"{directory}/cache",
        **dict.fromkeys(names, str(certificate)),
    }
    site = fill_configuration((DEPLOY / "nginx/holdfast.conf").read_text(encoding="utf-8"), services, changes)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{kind}_temp_path {directory}/{kind};" for kind in kinds)
    user = "user root;" if os.geteuid() == 0 else ""
    file = directory / "nginx.conf"
    file.write_text(
        f"{user} daemon off; pid {directory}/nginx.pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {temporary}\n{site}}}\n"
    )
    return [program("nginx"), "-p", str(directory), "-c", str(file)]


class DownProcess(NamedTuple):
    """A process that does not run."""

    url: str


def is_listening(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex((PROXY_ADDRESS, port)) == 0


def data_of(response: httpx2.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    return response.json()["data"]
