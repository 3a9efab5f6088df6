"""The database of the processor."""

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from holdfast_demo.shared.store import SQLiteStore
from holdfast_demo.stripe.errors import missing

StripeObject = dict[str, Any]
"""An object of the API. Members that begin with `_` are private; no answer contains them."""

_TABLES = """
create table if not exists things (
    position integer primary key autoincrement,
    kind text not null,
    id text not null unique,
    created integer not null,
    body text not null
);
create index if not exists things_of_a_kind on things (kind, position);
create index if not exists things_of_a_payment on things (kind, json_extract(body, '$.payment_intent'));
create index if not exists sessions_by_end on things (json_extract(body, '$.expires_at'))
    where kind = 'checkout.session' and json_extract(body, '$.status') = 'open';
"""


class ObjectPage(NamedTuple):
    """A part of a list, newest first, and whether there is more of it."""

    things: list[StripeObject]
    has_more: bool


class Store(SQLiteStore):
    """Objects by their ids."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(path, _TABLES)

    def put(self, thing: StripeObject, kind: str = "") -> StripeObject:
        """Store an object, new or changed."""
        self.db.execute(
            "insert into things (kind, id, created, body) values (?, ?, ?, ?)"
            " on conflict (id) do update set body = excluded.body",
            (kind or thing["object"], thing["id"], thing["created"], json.dumps(thing)),
        )
        return thing

    def find(self, kind: str, id: str) -> StripeObject | None:
        row = self.db.execute("select body from things where kind = ? and id = ?", (kind, id)).fetchone()
        return json.loads(row[0]) if row else None

    def get(self, kind: str, id: str, param: str = "id", status: int = 404) -> StripeObject:
        """The object with an id. Raises `StripeRefusal` if there is none."""
        thing = self.find(kind, id)
        if thing is None:
            raise missing(kind, id, param, status)
        return thing

    def page(
        self,
        kind: str,
        equal: Mapping[str, Any],
        created: Mapping[str, int],
        *,
        after: str = "",
        before: str = "",
        max_count: int = 10,
    ) -> ObjectPage:
        """A part of the list of a kind, newest first.

        equal      the values that members of the objects must have
        created    bounds on the time of creation: `gt`, `gte`, `lt`, `lte`
        after      the id after which the part begins; `before`: the id before which it ends
        """
        where, values = ["kind = ?"], [kind]
        for name, value in equal.items():
            where.append(f"json_extract(body, '$.{name}') = ?")
            values.append(value)
        for name, sign in {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}.items():
            if name in created:
                where.append(f"created {sign} ?")
                values.append(str(created[name]))
        for id, sign in ((after, "<"), (before, ">")):
            if id:
                self.get(kind, id, "starting_after" if sign == "<" else "ending_before", 400)
                where.append(f"position {sign} (select position from things where id = ?)")
                values.append(id)
        order = "position" if before else "position desc"
        statement = f"select body from things where {' and '.join(where)} order by {order} limit {max_count + 1}"
        things = [json.loads(row[0]) for row in self.db.execute(statement, values)]
        part = things[:max_count]
        return ObjectPage(part[::-1] if before else part, len(things) > max_count)

    def every(self, kind: str) -> list[StripeObject]:
        """All objects of a kind, oldest first."""
        rows = self.db.execute("select body from things where kind = ? order by position", (kind,))
        return [json.loads(row[0]) for row in rows]


def new_id(prefix: str) -> str:
    """A random id that cannot be guessed."""
    return f"{prefix}_{secrets.token_hex(12)}"
