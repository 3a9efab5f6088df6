"""The schema of each service as one file to read, `schema.sql`: made from a migrated database.

`python -m tests.programs.schema` writes both files, and `mail_kind.sql`, the one function that is made from a table in
the code. Nothing is ever applied from `schema.sql`: the migrations and the files of functions are the source. Tests
compare, and `holdfast check` compares what a database has with what it names.
"""

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import holdfast
from holdfast.events.mails.kinds import KINDS
from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from holdfast.kit.postgres.bundled_server import PROGRAMS
from holdfast.kit.process.service_process import ServiceProcess
from tests.helpers.data_directories import migrated_database, scratch_directory

SERVICES: dict[str, ServiceProcess[Any, Any]] = {"events": EVENTS, "inventory": INVENTORY}

MAIL_KIND_FILE = Path(holdfast.__file__).parent / "events" / "schema" / "functions" / "mail_kind.sql"

LIBRARY = re.compile(r"\bprocrastinate_")
"""Tables and functions of the job library, which brings its own schema."""

OBJECT = re.compile(r"^-- Name: (?P<name>.+?); Type: (?P<kind>[A-Z ]+?); Schema: .*$", re.MULTILINE)
TABLE = re.compile(r"\b(?:ON |(?:ON )?TABLE (?:ONLY )?)(?!TABLE)(\w+)")

ORDER = (
    "TABLE",
    "SEQUENCE",
    "DEFAULT",
    "CONSTRAINT",
    "FK CONSTRAINT",
    "INDEX",
    "TRIGGER",
    "ROW SECURITY",
    "POLICY",
    "ACL",
)
"""In which order the parts of a table are shown. Types and functions come before all tables."""


class Object(NamedTuple):
    kind: str
    name: str
    sql: str


def schema_file(service: str) -> Path:
    return Path(holdfast.__file__).parent / service / "schema" / "schema.sql"


def schema_of(service: str, url: str) -> str:
    """The schema of a migrated database as the text of `schema.sql`."""
    dump = [PROGRAMS / "pg_dump", "--schema-only", "--no-owner", "--no-comments", f"--dbname={url}"]
    text = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    first: list[Object] = []
    tables: dict[str, list[Object]] = defaultdict(list)
    for part in objects(text):
        if LIBRARY.search(part.name) or LIBRARY.search(part.sql):
            continue
        table = TABLE.search(part.sql) if part.kind in ORDER else None
        (tables[table[1]] if table else first).append(part)
    heading = (
        f"-- The schema of the {service} service, to read. `python -m tests.programs.schema` makes it from the\n"
        "-- migrations, and nothing is applied from it. The tables of the job library are left out.\n"
    )
    sections = [heading, *(part.sql for part in sorted(first, key=lambda part: (part.kind != "TYPE", part.name)))]
    for table, parts in sorted(tables.items()):
        in_order = sorted(parts, key=lambda part: (ORDER.index(part.kind), part.name))
        sections.append(f"-- {table} " + "-" * (116 - len(table)))
        sections.append("\n".join(part.sql for part in in_order))
    return "\n\n".join(sections) + "\n"


def objects(dump: str) -> Iterator[Object]:
    """What a dump creates. Each object has a comment before it that names it."""
    headings = list(OBJECT.finditer(dump))
    for head, following in zip(headings, [*headings[1:], None], strict=True):
        body = dump[head.end() : following.start() if following else len(dump)]
        lines = [line for line in body.splitlines() if not line.startswith(("--", "SET ", "\\", "SELECT pg_catalog"))]
        sql = re.sub(r"\n{2,}", "\n", "\n".join(lines)).replace("public.", "").strip()
        if sql:
            yield Object(head["kind"], head["name"], sql)


def mail_kind_function() -> str:
    """The text of `mail_kind.sql`: the causes in the table of the kinds of mails."""
    causes = [(before, after, kind) for kind, row in KINDS.items() for before, after in row.causes]
    cases = "\n".join(f"           when '{before} {after}' then '{kind}'" for before, after, kind in causes)
    return (
        "-- The kind of mail that a change of a registration causes; null: none.\n"
        "-- `python -m tests.programs.schema` makes this from `mails/kinds.py`.\n"
        "create or replace function mail_kind(before text, after text) returns text language sql immutable as $$\n"
        f"    select case before || ' ' || after\n{cases} end\n"
        "$$;\n"
    )


def main() -> None:
    MAIL_KIND_FILE.write_text(mail_kind_function(), encoding="utf-8")
    directory = scratch_directory()
    for service, product in SERVICES.items():
        text = schema_of(service, migrated_database(product, directory))
        schema_file(service).write_text(text, encoding="utf-8")
        print(schema_file(service))


if __name__ == "__main__":
    main()
