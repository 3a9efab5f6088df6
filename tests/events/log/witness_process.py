"""Witnesses as processes: `holdfast events log witness`, and aics-witness, which we did not write."""

import json
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.helpers.processes import HOLDFAST
from tests.serving import listener
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
    with listener() as free:
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
