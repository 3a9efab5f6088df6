"""Witnesses as processes: killed at any time, called concurrently, and together with foreign programs."""

import asyncio
import json
import random
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest

from holdfast.events.log.head_log import WitnessClient, http_client
from holdfast.events.settings import Settings
from holdfast_verify.check import catching_up
from holdfast_verify.formats.cosignature import CosignatureVerifier, find_cosignature
from holdfast_verify.formats.signed_note import Signer, encode_base64
from tests.events.log.forked_log import FORKED_AT, SIGNER, SIZE, note, proof, request, signer
from tests.events.log.log_scene import open_log, seal_logs
from tests.events.log.verification import rules, verify
from tests.helpers.processes import HOLDFAST
from tests.helpers.serving import bind_port, serve_events
from tests.verify.formats.verifiers import aics_environment

NAME = "witness.example.org/w1"


class WitnessProcess(NamedTuple):
    """A running witness: its address and its key."""

    process: subprocess.Popen[str]
    url: str
    vkey: str


@contextmanager
def witness_process(directory: Path, log_keys: Sequence[str]) -> Generator[WitnessProcess]:
    """Our witness of the logs with these keys, until the block ends; then it is killed, if it has not ended."""
    file = directory.with_suffix(".logs")
    file.write_text("# The logs of a partner\n" + "".join(f"{vkey}  # a log\n" for vkey in log_keys))
    options = ["--name", NAME, "--directory", directory, "--logs", file, "--port", "0"]
    command = [HOLDFAST, "events", "log", "witness", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            _, address, vkey = [process.stdout.readline() for _ in range(3)]
            yield WitnessProcess(process, address.split()[3].rstrip("."), vkey.strip())
        finally:
            process.kill()


@contextmanager
def aics_witness(directory: Path, log_key: str) -> Generator[WitnessProcess]:
    """A witness that we did not write. The test is skipped where PyPI cannot be reached."""
    with bind_port() as free:
        port = free.getsockname()[1]
    config, environment = directory / "witness.json", aics_environment()
    program = [sys.executable, "-m", "aics_witness"]

    def run(command: str, *options: str) -> str:
        arguments = [*program, command, "--config", config, *options]
        return subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True).stdout

    vkey = run("init", "--name", "aics.example.org/w1", "--listen", f"127.0.0.1:{port}").strip().splitlines()[-1]
    run("add-log", "--origin", log_key.partition("+")[0], "--vkey", log_key)
    serve = [*program, "serve", "--config", config]
    with subprocess.Popen(serve, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            while "listening on" not in (line := process.stderr.readline()):
                assert line, "it ended"
            yield WitnessProcess(process, f"http://127.0.0.1:{port}", vkey)
        finally:
            process.kill()


Submission = tuple[str, Sequence[tuple[int, Sequence[str]]]]
"""A signed head, and the proofs from other sizes to its own, in base64."""


def submit_with_aics(witness: WitnessProcess, submissions: Sequence[Submission]) -> list[str]:
    """What the client of aics-witness gets for each submission: a cosignature, or `refused: ` and the status."""
    script = Path(__file__).parent / "submit_with_aics.py"
    command = [sys.executable, script, witness.url, witness.vkey]
    ran = subprocess.run(
        command, env=aics_environment(), input=json.dumps(submissions), stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(ran.stdout)


VERSIONS = ("one", "other")


class Liar:
    """Services that show two versions of their logs, and ask for cosignatures on both until the witness is killed.

    cosigned    what was cosigned of each log: sizes and versions
    """

    def __init__(self, logs: list[Signer]) -> None:
        self.cosigned: dict[str, set[tuple[int, str]]] = defaultdict(set)
        self.problems: list[str] = []
        self._logs = logs
        self._lock = threading.Lock()

    def ask_until_killed(self, witness: WitnessProcess, kill_after: int) -> None:
        """Ask from several threads; the witness is killed after this many cosignatures, while others are asked for."""
        remaining = [kill_after]
        with ThreadPoolExecutor(6) as threads:
            list(threads.map(partial(self._ask, witness, remaining), range(6)))

    def _ask(self, witness: WitnessProcess, remaining: list[int], seed: int) -> None:
        dice = random.Random(seed)
        verifier = CosignatureVerifier(witness.vkey)
        with httpx2.Client(base_url=witness.url, trust_env=False) as http:
            for _ in range(1_000):
                log, version = dice.choice(self._logs), dice.choice(VERSIONS)
                try:
                    old_size = int(http.post("/add-checkpoint", content=request(SIZE, SIZE, signer=log).body).text)
                    size = min(SIZE, old_size + dice.randint(1, 3))
                    answer = http.post("/add-checkpoint", content=request(old_size, size, version, log).body)
                except (httpx2.HTTPError, ValueError):
                    return  # it was killed, or the log is full
                with self._lock:
                    if answer.status_code == 200:
                        if not find_cosignature(note(size, version, log) + answer.text, verifier):
                            self.problems.append(answer.text)
                        self.cosigned[log.name].add((size, version))
                        remaining[0] -= 1
                        if remaining[0] == 0:
                            witness.process.send_signal(signal.SIGKILL)
                    elif answer.status_code not in (409, 422):
                        self.problems.append(f"{answer.status_code} {answer.text}")


def test_a_witness_that_is_killed_never_cosigns_two_versions_of_a_log(tmp_path: Path) -> None:
    logs, dice = [signer(number) for number in range(8)], random.Random(7)
    liar = Liar(logs)
    for _ in range(4):
        with witness_process(tmp_path / "witness", [log.vkey for log in logs]) as witness:
            liar.ask_until_killed(witness, dice.randint(20, 60))

    assert liar.problems == []
    assert len(liar.cosigned) == len(logs)
    seen_versions = set[str]()
    for cosigned in liar.cosigned.values():
        versions = {version for size, version in cosigned if size > FORKED_AT}
        assert len(versions) == 1
        seen_versions |= versions
    assert seen_versions == {*VERSIONS}
    with witness_process(tmp_path / "witness", [log.vkey for log in logs]) as witness:
        for log in logs:
            size = int(httpx2.post(f"{witness.url}/add-checkpoint", content=request(SIZE, SIZE, signer=log).body).text)
            assert size >= max(size for size, _ in liar.cosigned[log.name])


def test_a_foreign_client_gets_cosignatures_and_is_refused_a_fork(tmp_path: Path) -> None:
    def with_proofs(size: int, version: str = "one") -> Submission:
        proofs = {old_size: proof(old_size, size, version) for old_size in (0, 10, 300) if old_size <= size}
        return note(size, version), [(old, [encode_base64(hash) for hash in proof]) for old, proof in proofs.items()]

    with witness_process(tmp_path / "witness", [SIGNER.vkey]) as witness:
        first = submit_with_aics(witness, [with_proofs(10), with_proofs(10), with_proofs(300)])
        # The client does not know any more what was cosigned, and is told.
        again = submit_with_aics(witness, [with_proofs(400, "other"), with_proofs(600)])

    verifier = CosignatureVerifier(witness.vkey)
    for size, line in zip((10, 10, 300, 600), [*first, again[1]], strict=True):
        assert find_cosignature(note(size) + line, verifier)
    assert again[0] == "refused: 422"


async def test_ours_and_another_witness_cosign_the_head_log_of_a_service(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catching_up, "TIMEOUT_SECONDS", 0)
    async with (
        serve_events(settings) as service,
    ):
        log = await open_log(service, seal=True)
        vkey = (await service.http.get("/log/heads/key")).text.strip()
        with (
            witness_process(tmp_path / "witness", [vkey]) as ours,
            aics_witness(tmp_path, vkey) as other,
        ):
            async with http_client() as client:
                for _ in range(3):
                    # Each time as another leader, who does not know what was cosigned, and is told.
                    witnesses = [
                        WitnessClient(client, witness.url, CosignatureVerifier(witness.vkey))
                        for witness in (ours, other)
                    ]
                    for _ in range(2):
                        await log.arrive(1)
                        await seal_logs(service, witnesses=witnesses)
        options = ("--witness", ours.vkey, "--witness", other.vkey)
        of_heads, report = await asyncio.to_thread(verify, f"{service.base_url}/log/heads", *options)
        _, of_event = await asyncio.to_thread(verify, f"{service.base_url}{log.path}", *options)

    assert (of_heads, report["figures"]) == (0, {"logs": 1, "heads": 7})
    assert len([name for name in report["checked"] if name.startswith("witness ")]) == 2
    # The rows of the scene are from another day.
    assert rules(of_event) <= {"late", "outcome", "counts"}
    assert "has cosigned" in of_event["checked"]["witness aics.example.org/w1"]
