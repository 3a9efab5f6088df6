"""The state of a double in one SQLite database: in memory, or in a file that survives a restart."""

import sqlite3
from collections.abc import Generator
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
