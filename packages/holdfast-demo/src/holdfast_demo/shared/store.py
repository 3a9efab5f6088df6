"""The state of a double: its time, and one SQLite database, in memory or in a file that survives a restart."""

import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path


class SQLiteStore:
    """A database with its tables. It is used from one thread at a time."""

    def __init__(self, path: Path | None, tables: str) -> None:
        if path:
            path.touch(mode=0o600)
            path.chmod(0o600)  # SQLite gives the files that it keeps beside this one the same mode
        self.db = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
        self.db.execute("pragma journal_mode = wal")
        self.db.execute("pragma synchronous = normal")
        self.db.executescript(tables)

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def change(self) -> Generator[None]:
        """Run the block in a transaction, which is rolled back if it raises. A nested block joins the outer one."""
        if self.db.in_transaction:
            yield
            return
        self.db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self.db.execute("rollback")
            raise
        self.db.execute("commit")


class Clock:
    """The real time plus the seconds by which a test has moved it. A move calls the listeners in `on_move`."""

    def __init__(self) -> None:
        self._moved = 0.0
        self.on_move: list[Callable[[], None]] = []

    def time(self) -> float:
        return time.time() + self._moved

    def now(self) -> int:
        """The time in whole seconds."""
        return int(self.time())

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        self._moved += seconds
        for listener in self.on_move:
            listener()
