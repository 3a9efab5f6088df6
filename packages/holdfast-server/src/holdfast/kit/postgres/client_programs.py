"""The bundled programs that copy databases: `pg_dump`, `pg_restore` and `psql`, run in pipes."""

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from threading import Thread
from typing import IO, Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.postgres.bundled_server import PROGRAMS

CHUNK_BYTES = 1024 * 1024

SESSION_NAME = "holdfast-copy"
"""The name of our sessions. It has no space, so that they are not taken for a service."""

ERROR = re.compile(r"^.*?\b(?:error|ERROR|FATAL): +")
"""What stands before the reason in a line of a program of PostgreSQL."""

REMEDIES = {
    "pg_dump": "Nothing was kept. Correct this, and start again.",
    "psql": "The database is as it was. Correct this, and start again.",
    "pg_restore": "Use another backup.",
}
"""What an operator does when a program has failed."""


@dataclass(frozen=True)
class Program:
    """A running program of PostgreSQL."""

    process: subprocess.Popen[Any]

    @property
    def input(self) -> IO[bytes]:
        assert self.process.stdin
        return self.process.stdin

    @property
    def output(self) -> IO[bytes]:
        assert self.process.stdout
        return self.process.stdout


@contextlib.contextmanager
def run_program(name: str, url: str, *options: str, **pipes: Any) -> Generator[Program]:
    """Run a program of PostgreSQL for as long as the block lasts. Raises `CannotStart` if it fails.

    url    the database that it uses; empty if it uses none
    """
    environment = {**os.environ, "LC_ALL": "C", "PGAPPNAME": SESSION_NAME}
    parts: dict[str, Any] = dict(conninfo_to_dict(url))
    if password := parts.pop("password", None):  # other users of the machine can see the words of a command
        environment["PGPASSWORD"] = str(password)
    place = [f"--dbname={make_conninfo('', **parts)}"] if url else []
    with tempfile.TemporaryFile() as errors:
        command = [PROGRAMS / name, *options, *place]
        process = subprocess.Popen(command, env=environment, stderr=errors, **pipes)  # noqa: S603 - the command is ours
        try:
            yield Program(process)
        except BaseException:
            process.kill()
            raise
        finally:
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            status = process.wait()
        if status:
            errors.seek(0)
            raise CannotStart(
                f"{name} did not finish: {_reason(errors.read().decode(errors='replace'))}. {REMEDIES[name]}"
            )


def piped(name: str, archive: Iterable[bytes], *options: str) -> Iterator[bytes]:
    """What a program writes while it reads an archive. Raises `CannotStart` if it fails, before the end."""
    failures: list[Exception] = []
    with run_program(name, "", *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:

        def feed() -> None:
            try:
                # A program that needs no more, or has failed, closes its input.
                with contextlib.suppress(BrokenPipeError), program.input:
                    for chunk in archive:
                        program.input.write(chunk)
            except Exception as error:  # raised below, in the thread of the caller
                failures.append(error)

        feeder = Thread(target=feed, daemon=True)
        feeder.start()
        yield from chunks_of(program.output)
        feeder.join()
    if failures:
        raise failures[0]


def chunks_of(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def _reason(output: str) -> str:
    """What a program said about its failure: the first error, without its context, which may quote rows."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if ERROR.search(line)]
    return ERROR.sub("", next(iter(errors or lines), "it gave no reason"))
