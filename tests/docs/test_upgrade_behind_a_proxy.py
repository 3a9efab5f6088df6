"""Two processes of a release on one machine are exchanged as the page says, behind HAProxy, and no request fails."""

import asyncio
import contextlib
import itertools
import re
import subprocess
from collections import Counter
from collections.abc import Generator
from functools import partial
from pathlib import Path

import httpx2
import pytest

from holdfast.events.service import EVENTS
from tests.docs.proxies import DEPLOY
from tests.faults.stored_order import register_organizer_with_event
from tests.faults.upgrades import code_of, old_database, shared_directory
from tests.helpers.events_service import eventually
from tests.helpers.installed_programs import program
from tests.helpers.processes import Process, port_that_stays_free
from tests.programs.releases import releases

CLIENTS = 4
STAGE_ANSWERS = 60
PAUSE_SECONDS = 0.02
"""For how long a client waits between its requests, so that processes start meanwhile as on a calm machine."""


@contextlib.contextmanager
def haproxy(directory: Path, *ports: int) -> Generator[str]:
    """HAProxy with the defaults and the checks of the shipped file, in front of processes at these ports."""
    text = (DEPLOY / "haproxy/haproxy.cfg").read_text(encoding="utf-8")
    defaults, backend = (
        re.findall(rf"^{name}\n(?:[ ].*\n)+", text, re.MULTILINE)[0] for name in ("defaults", "backend events")
    )
    addresses = iter(ports)
    backend = re.sub(r"10\.0\.0\.1[12]:8002", lambda _: f"127.0.0.1:{next(addresses)}", backend)
    port = port_that_stays_free()
    file = directory / "haproxy.cfg"
    file.write_text(f"{defaults}\nfrontend public\n    bind 127.0.0.1:{port}\n    default_backend events\n\n{backend}")
    with subprocess.Popen([program("haproxy"), "-f", file], cwd=directory) as proxy:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            proxy.terminate()


async def test_no_request_fails_while_two_processes_of_the_last_release_are_exchanged(
    template_url: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("haproxy")
    release = releases()[-1]
    monkeypatch.setenv("DRAIN_SECONDS", "5")
    code = code_of(release, shared_directory(tmp_path_factory))
    answers: Counter[tuple[str, int]] = Counter()
    numbers = itertools.count()
    stage = "old"
    ports = [port_that_stays_free(), port_that_stays_free()]
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(old_database(release, code, tmp_path, template_url, EVENTS))
        processes = [Process(old.url, tmp_path, "--port", str(port), code=code) for port in ports]
        stack.callback(lambda: [process.kill() for process in processes])
        address = stack.enter_context(haproxy(tmp_path, *ports))
        key, event_id = await register_organizer_with_event(processes[0], capacity=50_000, waitinglist_capacity=0)

        async with httpx2.AsyncClient(base_url=address, headers={"X-API-Key": key}, timeout=30) as http:

            async def is_ready(url: str) -> bool:
                with contextlib.suppress(httpx2.TransportError):
                    return (await http.get(f"{url}/readyz")).status_code == 200
                return False

            async def register() -> None:
                while stage:
                    person = {"event_id": event_id, "email": f"new{next(numbers)}@example.com"}
                    answer = await http.post("/api/registrations", json={"registration": person})
                    answers[stage, answer.status_code] += 1
                    await asyncio.sleep(PAUSE_SECONDS)

            async def has_answered(count: int) -> bool:
                return sum(number for (at, _), number in answers.items() if at == stage) >= count

            async def upgrade() -> None:
                nonlocal stage
                await eventually(lambda: has_answered(STAGE_ANSWERS))
                await asyncio.to_thread(EVENTS.migrate, old.url)
                stage = "migrated"
                await eventually(lambda: has_answered(STAGE_ANSWERS))
                for number, port in enumerate(ports):
                    await asyncio.to_thread(processes[number].stop)
                    processes[number] = await asyncio.to_thread(Process, old.url, tmp_path, "--port", str(port))
                    await eventually(partial(is_ready, processes[number].url))
                    stage = f"new {number}"
                    await eventually(lambda: has_answered(STAGE_ANSWERS))
                stage = ""

            await eventually(lambda: is_ready(address))
            await asyncio.gather(upgrade(), *(register() for _ in range(CLIENTS)))

    print(f"from {release} behind HAProxy: {sum(answers.values())} answers, {dict(answers)}")
    assert {status for _, status in answers} == {202}, answers
