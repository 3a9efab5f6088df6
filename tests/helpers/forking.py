"""Processes of `holdfast`, each forked from one that has imported the program already.

A process imports for a second before it works: a command then takes a tenth of a second, and a service as long to
start. What takes part in that import is tested in `tests/cli/test_help.py`, and by tests of services with several
workers, which start as users start them.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

TIMEOUT_SECONDS = 60
"""How long a command may take."""
MODULES = (
    *("holdfast.events.service", "holdfast.events.checks", "holdfast.inventory.service", "holdfast.inventory.checks"),
    "holdfast.commands.check_report",
)
"""What commands import besides the command line."""
EARLIER_MODULES = ("holdfast.events.product", "holdfast.inventory.product")
"""The same, up to release 0.2.0."""

PART, END = 65_536, b"\n"
"""The most bytes that are read at once, and the last of a message."""


class ForkedProcess:
    """A process that was forked: what tests need of a `subprocess.Popen`."""

    def __init__(self, answers: socket.socket) -> None:
        self._answers = answers.makefile("rb")
        pid = self._answers.readline()
        assert pid, "The process that forks has ended."
        self.pid = int(pid)
        self.returncode: int | None = None
        self._ending = threading.Thread(target=self._wait_for_end, daemon=True)
        self._ending.start()

    def wait(self, timeout: float) -> int:
        """Wait for its end. Returns its exit status. Raises `TimeoutExpired` if it goes on, and kills it."""
        self._ending.join(timeout)
        if self.returncode is None:
            self.kill()
            raise subprocess.TimeoutExpired("a forked process", timeout)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _wait_for_end(self) -> None:
        with self._answers:
            if answer := self._answers.readline():
                self.returncode = int(answer)


class Forks:
    """A process that has imported the program, and forks.

    code    where the program is, if it is an earlier release
    """

    def __init__(self, code: Path | None = None) -> None:
        self._connection, theirs = socket.socketpair()
        self._one_at_a_time = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.helpers.forking",
                    str(theirs.fileno()),
                    *(EARLIER_MODULES if code else MODULES),
                ],
                pass_fds=[theirs.fileno()],
                cwd=Path(__file__).parents[2],
                env={**os.environ, **({"PYTHONPATH": str(code)} if code else {})},
                start_new_session=True,
            )
        atexit.register(self.close)

    def start(
        self, words: Sequence[str], cwd: Path, environment: Mapping[str, str], out: int, err: int = 2
    ) -> ForkedProcess:
        """Run a command, with nothing to read, in this directory and environment alone."""
        from tests.isolation import CheckoutUsed, command_in_checkout  # knows no settings of earlier releases

        if use := command_in_checkout(words, cwd, environment):
            raise CheckoutUsed(use)
        command = {"argv": words, "cwd": str(cwd), "environment": dict(environment)}
        message = json.dumps(command).encode() + END
        answers, theirs = socket.socketpair()
        with answers, theirs, Path(os.devnull).open("rb") as nothing:
            with self._one_at_a_time:
                files = [nothing.fileno(), out, err, theirs.fileno()]
                sent = socket.send_fds(self._connection, [message], files)
                self._connection.sendall(message[sent:])
            theirs.close()
            return ForkedProcess(answers)

    def run(self, words: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, in the same way."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process = self.start(words, cwd, environment, out.fileno(), err.fileno())
            status = process.wait(TIMEOUT_SECONDS)
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(words, status, out.read(), err.read())

    def close(self) -> None:
        self._connection.close()
        self._process.wait(timeout=TIMEOUT_SECONDS)


@functools.cache
def forks(code: Path | None = None) -> Forks:
    """The one of this process, for the program of the checkout, or for the earlier release whose code is there."""
    return Forks(code)


def _fork_for(connection: socket.socket, modules: Sequence[str]) -> None:
    """Fork for each message. Returns when the sender has closed its end; a process that was forked ends in it."""
    import typer.main

    from holdfast import cli

    for module in modules:
        importlib.import_module(module)
    # To build the command line takes longer than most commands.
    setattr(typer.main, "get_command", functools.cache(typer.main.get_command))  # noqa: B010
    typer.main.get_command(cli.app)
    gc.freeze()
    wakeups, signals = socket.socketpair()
    signals.setblocking(False)
    signal.set_wakeup_fd(signals.fileno())
    signal.signal(signal.SIGCHLD, _ignore)
    selector = selectors.DefaultSelector()
    selector.register(connection, selectors.EVENT_READ)
    selector.register(wakeups, selectors.EVENT_READ)
    clients: dict[int, int] = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is wakeups:
                wakeups.recv(PART)
                _report_ends(clients)
            elif not (command := _receive(connection)):
                for pid in clients:  # their user has ended, and may have been killed
                    os.kill(pid, signal.SIGKILL)
                return
            else:
                pid = os.fork()
                if pid == 0:
                    _run(cli.main, *command)
                *files, client = command[1]
                for file in files:
                    os.close(file)
                clients[pid] = client
                os.write(client, str(pid).encode() + END)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing. A signal must have a handler to wake the selector."""


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next command, and four files: its input, output and errors, and the client. None: there is no next one."""
    message, files, _, _ = socket.recv_fds(connection, PART, 4)
    while not message.endswith(END):
        part = connection.recv(PART)
        if not part:
            return None
        message += part
    return json.loads(message), files


def _report_ends(clients: dict[int, int]) -> None:
    """Tell the clients of processes that have ended how they ended."""
    while clients:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        client = clients.pop(pid)
        os.write(client, str(os.waitstatus_to_exitcode(status)).encode() + END)
        os.close(client)


def _run(main: Callable[[], object], command: dict[str, Any], files: list[int]) -> NoReturn:
    """Run a program in this process as if it had just been started."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    os.closerange(3, max(files) + 1)
    os.chdir(command["cwd"])
    os.environ.clear()
    os.environ.update(command["environment"])
    sys.argv = command["argv"]
    sys.modules["__main__"].__package__ = None  # or it would call itself `python -m tests.holdfast`
    _run_to_the_end(main)


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
        _fork_for(control, sys.argv[2:])
