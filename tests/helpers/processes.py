"""Real server processes on one database, and people who register through them from many connections."""

import asyncio
import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx2
import psutil
import psycopg
import pytest

from holdfast.events.settings import Settings
from holdfast.kit.security.http_client import HttpClient
from holdfast.kit.security.service_secret import secret
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import UNLIMITED, Client, pause_after
from tests.helpers.forking import forks
from tests.helpers.serving import PLAIN
from tests.helpers.smtp import MailServer

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))


class Process:
    """`holdfast events serve`, or another service, in a process of its own. It may run other code than this."""

    def __init__(
        self,
        database_url: str,
        data_dir: Path,
        *options: str,
        service: str = "events",
        base_url: str = "",
        code: Path | None = None,
    ) -> None:
        self._environment = {
            # Thousands of mails would only be a load in tests of something else.
            "API_REGISTRATION_NOTIFY": "false",
            **os.environ,
            f"{service.upper()}_DATABASE_URL": database_url,
            # The one that services in the test's own process use too.
            f"{service.upper()}_SECRET_KEY": secret("", data_dir / f"{service}.secret").value.decode(),
            "HOLDFAST_DATA_DIR": str(data_dir),
            # Both services read MCP_RATE_LIMIT.
            **{str(Settings.model_fields[name].validation_alias): str(value) for name, value in UNLIMITED.items()},
            **({"PYTHONPATH": str(code)} if code else {}),
        }
        self._code = code
        self._port = 0
        if base_url:
            # It says that it listens there, so its port must be known before.
            self._environment[f"{service.upper()}_BASE_URL"] = base_url
            self._port = urlsplit(base_url).port or port_that_stays_free()
        self._service = service
        self._options = options
        self.log = data_dir / f"server-{id(self)}.log"
        self.start()

    def start(self) -> None:
        """Start the process, and return as soon as it takes connections.

        The socket of a process that was killed a moment ago may still be there, for less than a second.
        """
        for _ in range(5):
            log_start = self.log.stat().st_size if self.log.exists() else 0
            if address := self._started():
                self.url = f"http://127.0.0.1:{self._port}" if self._port else address
                return
            if "Address already in use" not in self.log.read_text()[log_start:]:
                break
        raise AssertionError(self.log.read_text())

    def _started(self) -> str | None:
        """Where it listens; None if it ended before."""
        words = [HOLDFAST, self._service, "serve", "--port", str(self._port), *self._options]
        reads, writes = os.pipe()
        self._output = os.fdopen(reads)
        with self.log.open("a") as log, os.fdopen(writes) as output:
            # Worker processes look at how their parent was started.
            if "--workers" in words:
                self._process = subprocess.Popen(words, env=self._environment, stdout=output, stderr=log)
            else:
                forking = forks(self._code)
                self._process = forking.start(words, Path.cwd(), self._environment, output.fileno(), log.fileno())
        if address := re.search(r"listens on (http://\S+)", self._output.readline()):
            return address[1]
        self.wait()
        return None

    def wait(self) -> int:
        """Wait until it has ended, and leave nothing of it. Returns its exit status."""
        status = self._process.wait(timeout=60)
        self._output.close()
        return status

    def memory(self) -> int:
        """The bytes of memory it holds."""
        return psutil.Process(self.id).memory_info().rss

    @property
    def id(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL: no goodbye, no clean-up."""
        self._process.kill()
        self.wait()

    def suspend(self) -> None:
        """SIGSTOP: everything stays open, and nothing goes on."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """SIGTERM; the exit status once it has ended."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait()


def port_that_stays_free() -> int:
    """A free port for a process that is started again: none that outgoing connections get meanwhile."""
    for port in random.sample(range(20_000, 32_000), 50):
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise AssertionError("No port is free.")


@contextlib.contextmanager
def running_processes(
    database_url: str, data_dir: Path, count: int, *options: str, service: str = "events", base_url: str = ""
) -> Generator[list[Process]]:
    """Processes on one database, with one base address if there is one."""
    processes = [Process(database_url, data_dir, *options, service=service, base_url=base_url) for _ in range(count)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()


@contextlib.asynccontextmanager
async def organizer_at(url: str, **fields: Any) -> AsyncGenerator[Client]:
    """A new organizer of the service at an address: Ada, unless the fields say otherwise."""
    organizer = {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events", **fields}
    async with HttpClient(verify=PLAIN, base_url=url, timeout=30) as http:
        answer = await http.post("/api/organizers/register", json={"organizer": organizer})
        assert answer.status_code == 201, answer.text
        made = answer.json()["data"]
        yield Client(http, made["api_key"]["key"], made["organizer"]["id"], made["organizer"]["slug"])


class AnsweredRegistration(NamedTuple):
    """One registration that was answered with 202: when it was sent and answered, and where to poll."""

    sent: float
    answered: float
    poll: str


async def register_all(
    processes: list[Process], key: str, people: Iterator[dict[str, Any]], *, connections: int = 64
) -> list[AnsweredRegistration]:
    """Register everyone from this many connections spread over the processes; those that were answered with 202.

    When a connection breaks, the same person asks another process. Nothing but 202 and the refusal of a full event is
    an answer.
    """
    accepted: list[AnsweredRegistration] = []
    loop = asyncio.get_running_loop()

    async def one(number: int) -> None:
        async with HttpClient(verify=PLAIN, headers={"X-API-Key": key}, timeout=30) as http:
            for person in people:
                sent = loop.time()
                while True:
                    process = processes[number % len(processes)]
                    try:
                        response = await http.post(f"{process.url}/api/registrations", json={"registration": person})
                        break
                    except httpx2.TransportError:
                        number += 1
                if response.status_code == 202:
                    accepted.append(AnsweredRegistration(sent, loop.time(), response.json()["next"]["url"]))
                else:
                    assert response.json()["code"] == "event_full", response.text

    await asyncio.gather(*(one(number) for number in range(connections)))
    return accepted


async def outcomes(process: Process, key: str, polls: list[str], *, seconds: float = 60) -> dict[str, dict[str, Any]]:
    """The final answer at each address, polled until none is pending."""
    answers: dict[str, dict[str, Any]] = {}
    async with (
        asyncio.timeout(seconds),
        HttpClient(verify=PLAIN, headers={"X-API-Key": key}, timeout=30) as http,
    ):
        for poll in polls:
            answer = (await http.get(process.url + poll)).json()
            while answer.get("code") == "registration_pending":
                await asyncio.sleep(pause_after(0))
                answer = (await http.get(process.url + poll)).json()
            answers[poll] = answer
    return answers


async def register_person(process: Process, key: str, event_id: int, email: str) -> str:
    """Register a person. Returns the address to poll."""
    async with HttpClient(base_url=process.url, headers={"X-API-Key": key}) as http:
        answer = await http.post("/api/registrations", json={"registration": {"event_id": event_id, "email": email}})
    assert answer.status_code == 202, answer.text
    return answer.json()["next"]["url"]


def use_mail_server(server: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes that are started now send mails by a server."""
    for name, value in {**server.settings, "api_registration_notify": True}.items():
        monkeypatch.setenv(name.upper(), str(value))


def establish_organizers(database_url: str, since: str = "60 days") -> None:
    """Let every organizer have proved its address: if that is long ago, its mails leave at once."""
    with psycopg.connect(database_url) as connection:
        connection.execute("update users set proved_at = now() - %s::interval where role = 'organizer'", [since])


@contextlib.asynccontextmanager
async def kill_in_turn(processes: Sequence[Process], max_pause_seconds: float = 0.6) -> AsyncGenerator[list[int]]:
    """While the block lasts, one process after the other is killed at a random moment and started again.

    It then serves at least as long as its start took: on a busy machine all time would go into starts.
    """
    kills: list[int] = []
    chance = random.Random(5)

    async def kill() -> None:
        seconds_of_start = 0.0
        while True:
            await asyncio.sleep(chance.uniform(0.1, max_pause_seconds) + seconds_of_start)
            process = chance.choice(processes)
            process.kill()
            kills.append(process.id)
            began = time.monotonic()
            await asyncio.to_thread(process.start)
            seconds_of_start = time.monotonic() - began

    async with run_in_background(kill()):
        yield kills
