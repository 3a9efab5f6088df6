"""Verifiers of logs that we did not write: Go's checksum database, aics-tlog and Sigstore; and aics-witness, a witness.

Each looks at the files of one log in a directory:

checkpoint        the signed head
old-checkpoint    an earlier one; may be absent
tile/             tiles and bundles of entries of the checkpoint's size, below the paths of C2SP, tlog-tiles
proofs/           proof files (C2SP, tlog-proof), with any names, with this checkpoint or one of the same size

`download` gets them from a server. Go and aics-tlog verify everything, Sigstore the proof files.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path

import httpx2
import pytest

from holdfast_verify.formats.proof_file import parse_proof_file
from holdfast_verify.formats.tree import TILE_WIDTH, tile_path
from tests.helpers.installed_programs import program
from tests.helpers.node import ROOT, installed_packages, node

HERE = Path(__file__).parent
PACKAGES = ROOT / "conformance" / "log"
"""What is locked for Node and Python."""

CACHE = ROOT / ".venv" / "log-verifiers"
"""Where that is installed, and where Go keeps what it has compiled."""

GO_LIBRARIES = Path("/usr/share/gocode")
REFUSED = 3


class LogRefused(Exception):
    """A verifier refuses a log; this is what it said."""


def tile_paths(size: int) -> Iterator[str]:
    """The paths of all tiles of a log of this size, and of all bundles of its entries."""
    for level in ("entries", *range((size.bit_length() + 7) // 8)):
        full, width = divmod(size >> 8 * (0 if level == "entries" else level), TILE_WIDTH)
        yield from (tile_path(level, number) for number in range(full))
        if width:
            yield tile_path(level, full, width)


async def download(client: httpx2.AsyncClient, directory: Path, proofs: Iterable[str] = ()) -> None:
    """Get the files of a log from its address, which is the base URL of the client, with the proofs of these names.

    A checkpoint that is in the directory already becomes the old one.
    """
    checkpoint = directory / "checkpoint"
    if checkpoint.exists():
        checkpoint.rename(directory / "old-checkpoint")
    note = await _content(client, "checkpoint")
    size = int(note.split(b"\n")[1])
    _write(checkpoint, note)
    for path in [*tile_paths(size), *(f"proofs/{name}" for name in proofs)]:
        _write(directory / path, await _content(client, path))


async def _content(client: httpx2.AsyncClient, path: str) -> bytes:
    response = await client.get(path)
    response.raise_for_status()
    return response.content


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def verify_with_go(directory: Path, vkey: str) -> None:
    """Verify everything with `golang.org/x/mod/sumdb`. It raises LogRefused; the test is skipped without Go."""
    _judge(subprocess.run([_go_program(), directory, vkey], capture_output=True, text=True, check=False))


def verify_with_aics(directory: Path, vkey: str) -> None:
    """Verify everything with `aics-tlog`. It raises LogRefused; the test is skipped where PyPI cannot be reached."""
    _run_with_aics("verify", directory, vkey)


def cosign_with_aics(note: str, log_vkey: str, witness_vkey: str) -> str:
    """Verify a cosigned checkpoint with `aics-tlog`, and return it with a cosignature that `aics-tlog` made.

    It raises LogRefused; the test is skipped where PyPI cannot be reached. The key of the cosignature is named `aics`,
    and its private key is 32 bytes of 2.
    """
    return _run_with_aics("cosign", note, log_vkey, witness_vkey)


def _run_with_aics(command: str, *arguments: str | Path) -> str:
    ran = subprocess.run(
        [sys.executable, HERE / "with_aics.py", command, *arguments],
        env=aics_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    _judge(ran)
    return ran.stdout


def aics_environment() -> dict[str, str]:
    """The environment of a process that has aics-tlog and aics-witness. The test is skipped where they are not."""
    return {**os.environ, "PYTHONPATH": f"{_python_packages()}"}


def verify_with_sigstore(directory: Path, vkey: str) -> None:
    """Verify the proof files with `@sigstore/verify`. It raises LogRefused, and skips without npm's registry."""
    script = (HERE / "verify_with_sigstore.js").read_text(encoding="utf-8")
    with _only_one_installs():
        packages = installed_packages(PACKAGES, CACHE / "node")
    _judge(node(packages, "--eval", script, directory, vkey))


@cache
def _go_program() -> Path:
    go, compiled = program("go"), CACHE / "verify"
    if not (GO_LIBRARIES / "src/golang.org/x/mod/sumdb").exists():
        _skip("golang-golang-x-mod-dev is not installed")
    settings = {"GO111MODULE": "off", "GOPATH": f"{GO_LIBRARIES}", "GOCACHE": f"{CACHE / 'go'}", "CGO_ENABLED": "0"}
    with _only_one_installs():
        build = [go, "build", "-o", compiled, HERE / "verify.go"]
        built = subprocess.run(build, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return compiled


@cache
def _python_packages() -> Path:
    """The folder of aics-tlog and aics-witness.

    They ask for Python 3.12, but 3.11 runs them as well: so they are not in the environment.
    """
    lock = PACKAGES / "requirements.lock"
    packages = CACHE / f"python-{sha256(lock.read_bytes()).hexdigest()[:8]}"
    options = ["--quiet", "--no-deps", "--require-hashes", "--python-version", "3.12", "--target", packages]
    install = [ROOT / ".venv" / "bin" / "uv", "pip", "install", *options, "--requirement", lock]
    with _only_one_installs():
        if not packages.exists():
            uv = subprocess.run(install, capture_output=True, text=True, check=False)
            if uv.returncode:
                _skip(f"aics-tlog cannot be installed: {uv.stderr}")
    return packages


@contextmanager
def _only_one_installs() -> Generator[None]:
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _judge(verifier: subprocess.CompletedProcess[str]) -> None:
    if verifier.returncode == REFUSED:
        raise LogRefused(verifier.stdout)
    assert verifier.returncode == 0, verifier.stderr


def _skip(reason: str) -> None:
    pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


@contextmanager
def replace_files(log: Path, contents: dict[str, bytes]) -> Generator[None]:
    """The log with other contents of some files, for as long as the block lasts."""
    genuine = {path: (log / path).read_bytes() for path in contents}
    try:
        for path, content in contents.items():
            (log / path).write_bytes(content)
        yield
    finally:
        for path, content in genuine.items():
            (log / path).write_bytes(content)


def files_with_checkpoint(log: Path, note: str) -> dict[str, bytes]:
    """Another checkpoint, also in the proof files."""
    proofs = {f"proofs/{path.name}": parse_proof_file(path.read_text("utf-8")) for path in log.glob("proofs/*")}
    changed = {path: proof._replace(checkpoint=note).text.encode() for path, proof in proofs.items()}
    return {"checkpoint": note.encode(), **changed}
