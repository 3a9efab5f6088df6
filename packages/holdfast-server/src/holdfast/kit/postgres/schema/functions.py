"""Functions and triggers: `.sql` files, which are read whole.

`triggers/` has a file for each table that has triggers: all of these, with the functions that only they call. It begins
with a list of what a change of a row causes. `functions/` has a file for each other function: those that triggers of
several tables or other statements call.

They are applied after the migrations, all in one transaction, whenever the text of one has changed. Together they count
as one migration, whose name is a hash of their texts and the version of the program. What no file has any more is
dropped.

A database keeps the functions of the newest version that has migrated it: a process of an earlier version that starts
during an upgrade leaves them. Versions in development with the same number have no order: the last one that migrates
has its functions, and the others start with those.

`create or replace trigger` blocks all writers of its table. So each statement has a checksum of its own, and only what
differs is applied. Comments between statements are part of none, and neither is the file: a statement may move to
another one.

Processes of an earlier version lose a trigger at once when it is dropped. So work that moves from a trigger into the
statements of the program takes two releases: in the first, the trigger works only for processes of the version before.

A function that a table, an index, a policy or a view uses has no such file. It belongs to the migration that makes
them: with another text, what is stored could be wrong.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from holdfast import __version__
from holdfast.kit.postgres.schema.lineage import Migration

DEFINITION = re.compile(
    r"^create or replace (?:(?P<function>function \w+\([^()]*\))|(?P<trigger>trigger \w+)\s[^;]*?(?P<table>\son \w+))",
    re.MULTILINE,
)

COMMENTS_AT_END = re.compile(r"(?:\s*\n--[^\n]*)*\s*$")
"""Comments between a definition and the next one."""

NAME = re.compile(
    r"functions (?P<hash>[0-9a-f]{12})(?: of (?P<major>\d+)\.(?P<minor>\d+)\.(?P<patch>\d+)(?P<development>\.dev\d+)?)?"
)
"""The name of a set of functions. Release 0.1.0 gave it no version."""

TABLE = """
    create table functions (name text primary key, checksum text not null);
    comment on table functions is 'The functions and triggers that were applied from files.';
    -- Triggers that older versions made in migrations: each is replaced, or dropped.
    insert into functions (name, checksum)
    select format('trigger %s on %s', tgname, tgrelid::regclass), '' from pg_trigger
     where not tgisinternal and tgrelid::regclass::text not like 'procrastinate%'
"""


@dataclass(frozen=True)
class Functions(Migration):
    """All functions and triggers of a service.

    definitions   the statements that define each one, by its kind and name, in the order in which they are applied
    """

    definitions: Mapping[str, str]

    def is_in(self, applied: Sequence[str]) -> bool:
        """Whether a database has these functions, or those of a newer version."""
        sets = [recorded for name in reversed(applied) if (recorded := NAME.fullmatch(name))]
        own_name = NAME.fullmatch(self.name)
        newest = max(sets, key=_order, default=None)  # of those with the same version, the one that was applied last
        assert own_name, f"{self.name} is not of a version such as 1.2.3 or 1.2.3.dev0"
        return newest is not None and (newest["hash"] == own_name["hash"] or _order(newest) > _order(own_name))

    def apply(self, connection: psycopg.Connection[Any]) -> None:
        # A body may call a function that is defined after it.
        connection.execute("set local check_function_bodies = off")
        if connection.execute("select to_regclass('functions')").fetchone() == (None,):
            connection.execute(TABLE)
        applied = dict(connection.execute("select name, checksum from functions").fetchall())
        checksums = {name: _checksum(sql) for name, sql in self.definitions.items()}
        changed_checksums = {name: checksum for name, checksum in checksums.items() if applied.get(name) != checksum}
        gone = sorted(applied.keys() - checksums.keys(), key=lambda name: (_is_function(name), name))
        connection.execute("delete from functions where name = any(%s)", [[*changed_checksums, *gone]])
        connection.execute(
            "insert into functions (name, checksum) select * from unnest(%s::text[], %s::text[])",
            [[*changed_checksums], [*changed_checksums.values()]],
        )
        for name in filter(_is_function, changed_checksums):
            try:
                connection.execute(self.definitions[name].encode())
            except psycopg.Error as error:
                error.add_note(name)
                raise
        _change_triggers(
            connection, {name: self.definitions[name] for name in changed_checksums if not _is_function(name)}, gone
        )


def _change_triggers(connection: psycopg.Connection[Any], statements: Mapping[str, str], gone: Sequence[str]) -> None:
    """Make triggers, and drop what is gone, in one message.

    Each statement locks its table until the commit: writers wait no longer than PostgreSQL works.
    """
    statements = {**statements} | {name: f"drop {name};" for name in gone}
    if statements:
        try:
            connection.execute(f"do $triggers$ begin {' '.join(statements.values())} end $triggers$".encode())
        except psycopg.Error as error:
            for name, sql in statements.items():
                if sql.partition(";")[0] in (error.diag.context or ""):
                    error.add_note(name)
            raise


def read_functions(directories: Iterable[Path], version: str = __version__) -> Functions:
    """The functions and triggers in the files of some directories: all functions first."""
    files = [path for directory in directories for path in directory.glob("*.sql")]
    by_file = [definition for path in files for definition in _definitions(path)]
    in_order = sorted(by_file)
    # Triggers on `users` come before those on `registrations`, as the services lock these tables. In the other order,
    # this transaction would hold one lock while it waits for a writer that waits for it.
    in_order.sort(key=lambda definition: _table(definition[0]), reverse=True)
    definitions = dict(sorted(in_order, key=lambda definition: not _is_function(definition[0])))
    sql = "\n".join(definitions.values())
    return Functions(f"functions {_checksum(sql)[:12]} of {version}", sql, definitions)


def _definitions(path: Path) -> Iterable[tuple[str, str]]:
    """What a file defines. A statement belongs to the definition before it, such as the grant of a function."""
    text = path.read_text(encoding="utf-8")
    starts = list(DEFINITION.finditer(text))
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        name = start["function"] or f"{start['trigger']}{start['table']}"
        sql = text[start.start() : end.start() if end else len(text)]
        yield " ".join(name.split()), COMMENTS_AT_END.sub("", sql)


def _order(name: re.Match[str]) -> tuple[int, int, int, bool]:
    """The place of a set of functions among those of other versions."""
    major, minor, patch = (int(name[part] or 0) for part in ("major", "minor", "patch"))
    return major, minor, patch, name["development"] is None


def _table(name: str) -> str:
    """The table of a trigger; empty for a function."""
    return "" if _is_function(name) else name.rpartition(" on ")[2]


def _is_function(name: str) -> bool:
    """Whether a definition is a function. Triggers are dropped before the functions that they call, and made after."""
    return name.startswith("function")


def _checksum(sql: str) -> str:
    return hashlib.sha256(sql.encode()).hexdigest()
