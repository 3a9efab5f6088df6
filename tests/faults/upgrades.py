"""Services that are upgraded from a release under load. The release runs from a wheel that is built of its tag."""

import asyncio
import fcntl
import itertools
import os
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from holdfast import __version__
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.security.service_secret import secret
from tests.helpers.databases import CLONE, scratch_database
from tests.helpers.events_service import eventually
from tests.helpers.forking import forks
from tests.helpers.processes import HOLDFAST, Process
from tests.programs.releases import files_of

SOAK = "HOLDFAST_SOAK" in os.environ

STAGE_ANSWERS = 1300 if SOAK else 100
"""How many requests are answered in each stage of an upgrade without a stop; twice as many in one with a stop."""

PAUSE_SECONDS = 0 if SOAK else 0.1
"""For how long a client waits between its requests, so that processes start meanwhile as on a calm machine."""

UV = Path(sys.executable).with_name("uv")


def code_of(release: str, directory: Path) -> Path:
    """Where the code of a release is: its wheel, unpacked. It is built once for all workers that share a directory.

    Fails if the history does not have the release.
    """
    code = directory / f"holdfast-{release}"
    with (directory / "releases.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not code.exists():
            with tempfile.TemporaryDirectory(dir=directory) as building:
                _unpack_wheel(release, Path(building))
                (Path(building) / "code").rename(code)
    return code


def _unpack_wheel(release: str, directory: Path) -> None:
    wheel = directory / f"holdfast_server-{release}-py3-none-any.whl"
    files_of(release, directory / "files")
    build = [UV, "build", "--quiet", "--wheel", "--no-build-isolation", "--python", sys.executable]
    build += ["--out-dir", directory, directory / "files"]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(wheel) as files:
        files.extractall(directory / "code")


def shared_directory(factory: pytest.TempPathFactory) -> Path:
    """A directory that all workers of a run share."""
    directory = factory.getbasetemp()
    return directory.parent if "PYTEST_XDIST_WORKER" in os.environ else directory


class OldDatabase(NamedTuple):
    """A database that a release has made.

    directory    the data directory with the secret of its contents
    key          what a command of the release has printed last, such as the key of a shop
    """

    release: str
    code: Path
    url: str
    directory: Path
    key: str


@contextmanager
def old_database(
    release: str, code: Path, directory: Path, template_url: str, product: ServiceProcess[Any, Any], *words: str
) -> Generator[OldDatabase]:
    """A database that the code of a release has made: migrated by its commands, also the one of `words`."""
    with scratch_database(template_url, "release", "template template1") as url:
        name = product.name
        environment = {
            **os.environ,
            "PYTHONPATH": str(code),
            f"{name.upper()}_DATABASE_URL": url,
            f"{name.upper()}_SECRET_KEY": secret("", directory / f"{name}.secret").value.decode(),
            "HOLDFAST_DATA_DIR": str(directory),
        }
        done = ""
        for command in (("migrate",), words) if words else (("migrate",),):
            printed = forks(code).run([HOLDFAST, name, *command], Path.cwd(), environment)
            assert printed.returncode == 0, printed.stderr
            done = printed.stdout.splitlines()[-1]
        yield OldDatabase(release, code, url, directory, done)


class Upgrade:
    """A service while it is upgraded from a release.

    url        its database
    stage      what has been reached; empty when all is done
    answers    how many requests were answered, by stage and status
    """

    def __init__(self, url: str, old: OldDatabase, product: ServiceProcess[Any, Any]) -> None:
        self.url = url
        self.stage = "old code"
        self.answers: Counter[tuple[str, int]] = Counter()
        self.directory = old.directory
        self._release = old.release
        self._old_code = old.code
        self._product = product
        self._started: list[Process] = []
        self._serving: list[Process] = []
        self._open_requests: Counter[Process] = Counter()
        self._turns = itertools.count()
        self._is_served = asyncio.Event()
        self._is_served.set()

    def start(self, code: Path | None = None) -> Process:
        process = Process(self.url, self.directory, service=self._product.name, code=code)
        self._started.append(process)
        self._serving.append(process)
        return process

    @property
    def process(self) -> Process:
        """The first of those that serve."""
        return self._serving[0]

    async def run(self, *, stop: bool) -> None:
        """Do the upgrade, under the load that others make."""
        await (self._run_with_a_stop() if stop else self._run_without_a_stop())
        assert f'"version": "{__version__}"' in self.process.log.read_text()
        self.stage = ""

    async def _run_without_a_stop(self) -> None:
        await self._load("old code")
        self.stage = "migration"
        await asyncio.to_thread(self._product.migrate, self.url)
        # Old code may be started again, too.
        await asyncio.to_thread(self.start, self._old_code)
        await self._load("old code on the new schema")
        old = [*self._started]
        await asyncio.to_thread(self.start)
        await self._load("old and new code")
        for process in old:
            # As a load balancer does: nothing more is sent to it, and what was sent is answered.
            self._serving.remove(process)
            await self._end(process)
        await self._load("new code")

    async def _run_with_a_stop(self) -> None:
        await self._load("old code", 2 * STAGE_ANSWERS)
        self._is_served.clear()
        [old] = [*self._serving]
        self._serving.clear()
        await self._end(old)
        await asyncio.to_thread(self._product.migrate, self.url)
        await asyncio.to_thread(self.start)
        self._is_served.set()
        await self._load("new code", 2 * STAGE_ANSWERS)

    async def _load(self, stage: str, answers: int = STAGE_ANSWERS) -> None:
        """Begin a stage, and return when this many requests were answered in it."""
        self.stage = stage
        await eventually(lambda: sum(count for (at, _), count in self.answers.items() if at == stage) >= answers, 300)

    async def _end(self, process: Process) -> None:
        await eventually(lambda: not self._open_requests[process], 60)
        await asyncio.to_thread(process.stop)
        self._started.remove(process)

    async def ask(self, http: httpx2.AsyncClient, method: str, path: str, body: Any = None) -> httpx2.Response:
        """The answer of one process after the other. None fails, and none is repeated."""
        await self._is_served.wait()
        process, stage = self._serving[next(self._turns) % len(self._serving)], self.stage
        self._open_requests[process] += 1
        answer = await http.request(method, process.url + path, json=body)
        self._open_requests[process] -= 1
        self.answers[stage, answer.status_code] += 1
        await asyncio.sleep(PAUSE_SECONDS)
        assert answer.status_code < 500, (stage, path, answer.text, process.log.read_text()[-3000:])
        return answer

    def report(self) -> None:
        """Print how many requests were answered, by stage and status."""
        total = self.answers.total()
        print(f"{self._product.name} from {self._release}, {total} answers:", *sorted(self.answers.items()))

    def close(self) -> None:
        for process in self._started:
            process.kill()


@contextmanager
def open_upgrade(old: OldDatabase, product: ServiceProcess[Any, Any]) -> Generator[Upgrade]:
    """A service that is to be upgraded, on a clone of a database that a release has made."""
    with scratch_database(old.url, "versions", CLONE) as url:
        upgrade = Upgrade(url, old, product)
        try:
            upgrade.start(old.code)
            yield upgrade
        finally:
            upgrade.close()
