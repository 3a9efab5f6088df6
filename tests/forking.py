"""Commands of `holdfast`, each in a process of its own, forked from one that has imported the program already.

A command imports for a second before it works for a tenth of one. What takes part in that import is tested in
`tests/cli/test_help.py`, and by every test that starts a service.
"""

import atexit
import functools
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

TIMEOUT_SECONDS = 60
"""How long a command may take."""
PART, END = 65_536, b"\n"
"""The most bytes that are read at once, and the last of a message."""


class Forks:
    """A process that has imported the program, and forks for each command."""

    def __init__(self) -> None:
        self._connection, theirs = socket.socketpair()
        self._connection.settimeout(TIMEOUT_SECONDS)
        self._one_at_a_time = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forking", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=Path(__file__).parents[1],
                start_new_session=True,
            )
        atexit.register(self.close)

    def run(self, words: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with nothing to read, in this directory and environment alone."""
        message = json.dumps({"argv": words, "cwd": str(cwd), "environment": dict(environment)}).encode() + END
        with (
            Path(os.devnull).open("rb") as nothing,
            tempfile.TemporaryFile("w+") as out,
            tempfile.TemporaryFile("w+") as err,
        ):
            with self._one_at_a_time:
                files = [file.fileno() for file in (nothing, out, err)]
                sent = socket.send_fds(self._connection, [message], files)
                self._connection.sendall(message[sent:])
                try:
                    status = self._connection.recv(PART)
                except TimeoutError:
                    forks.cache_clear()
                    os.killpg(self._process.pid, signal.SIGKILL)
                    raise
            assert status, "The process that forks has ended."
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(words, int(status), out.read(), err.read())

    def close(self) -> None:
        self._connection.close()
        self._process.wait(timeout=TIMEOUT_SECONDS)


@functools.cache
def forks() -> Forks:
    """The one of this process."""
    return Forks()


def _fork_for(connection: socket.socket) -> None:
    """Fork for each message. Returns when nobody asks any more; a process that was forked ends in it."""
    from holdfast import cli
    from holdfast.events import product as events
    from holdfast.inventory import product as inventory

    _ = events, inventory
    gc.freeze()
    while True:
        message, files, _, _ = socket.recv_fds(connection, PART, 3)
        while not message.endswith(END):
            part = connection.recv(PART)
            if not part:
                return
            message += part
        pid = os.fork()
        if pid == 0:
            connection.close()
            command = json.loads(message)
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            os.chdir(command["cwd"])
            os.environ.clear()
            os.environ.update(command["environment"])
            sys.argv = command["argv"]
            _run_to_the_end(cli.main)
        for file in files:
            os.close(file)
        connection.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def _run_to_the_end(main: Callable[[], object]) -> NoReturn:
    """Run a program, and end as it does. Memory is not freed: it is shared, and would be copied for that."""
    try:
        main()
        status = 0
    except SystemExit as end:
        status = end.code or 0
        assert isinstance(status, int)
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - waits for threads
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as control:
        _fork_for(control)
