"""A small service for agents, on a real database: jars that are filled and emptied, and announce it."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Annotated, Any, LiteralString

from limits import RateLimitItemPerHour
from msgspec import Meta, Struct

from holdfast.kit import mcp
from holdfast.kit.contract.caller import Caller, api_key
from holdfast.kit.contract.command import Command, Id, Timestamp, rule
from holdfast.kit.contract.problems import (
    INSUFFICIENT_SCOPE,
    NOT_FOUND,
    RATE_LIMITED,
    SERVICE_UNAVAILABLE,
    Problem,
    ProblemType,
)
from holdfast.kit.http.event_streams import Feed, Streams
from holdfast.kit.operations.operation import (
    ADDS,
    OVERWRITES,
    READS,
    SETS,
    Batch,
    Operation,
    Operations,
    read,
    read_batched,
    single,
)
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.process.part import Endpoints
from holdfast.kit.process.service import Service
from holdfast.kit.security import api_keys
from holdfast.kit.security.api_keys import KeyRing, digest, new_key
from tests.helpers.any_bound import ANY_BOUND
from tests.helpers.connections import ReusedConnection

JAR_FULL = ProblemType("jar_full", 409, "The jar is full.", "Put in less, or empty the jar first.")
CHANNEL = "jars"

SCHEMA: LiteralString = """
    drop table if exists jars, jar_keys;
    drop sequence if exists jar_changes;
    create table jars (id int primary key, label text not null, content int not null default 0 check (content <= 100));
    insert into jars (id, label) values (1, 'Beans'), (2, 'Lentils'), (3, 'Rice');
    create sequence jar_changes;
    create table jar_keys (hash bytea primary key, id serial, scopes text[])
"""


class Jar(Struct):
    """A jar, and how full it is."""

    id: int
    label: str
    content: Annotated[int, Meta(description="Grams in the jar.")]


class JarPage(Struct):
    jars: list[Jar]
    next_cursor: str | None


class Sum(Struct):
    sum: int


class Window(Struct):
    opens_at: Timestamp
    hours: float


class AddNumbers(Command):
    a: Annotated[int, Meta(description="One number, such as 2.")]
    b: Annotated[int, Meta(description="Another, such as 3.")]


class ListJars(Command):
    cursor: Annotated[str, Meta(pattern="^[0-9]{0,9}$", description="`next_cursor` of the page before.")] = ""
    limit: Annotated[int, Meta(ge=1, le=100, description="Jars on the page.")] = 2


class OneJar(Command):
    jar_id: Annotated[Id, Meta(description="The jar, such as 1.")]


class FillJar(Command):
    jar_id: Annotated[Id, Meta(description="The jar, such as 1.")]
    grams: Annotated[int, Meta(ge=1, le=1000, description="How much to put in, such as 50.")]
    note: Annotated[str | None, Meta(description="Why.")] = None

    @rule("grams", "note")
    def explained(self) -> str | None:
        return "needs a note above 500" if self.grams > 500 and not self.note else None


class PlanWindow(Command):
    opens_at: Annotated[Timestamp, Meta(description="When it opens.")]
    closes_at: Annotated[Timestamp, Meta(description="When it closes.")]


class Nothing(Command):
    """Asks for nothing."""


async def add_numbers(reader: Reader[Any], caller: Caller, command: AddNumbers) -> Sum:
    """Add two numbers."""
    return Sum(command.a + command.b)


async def list_jars(reader: Reader[Any], caller: Caller, command: ListJars) -> JarPage:
    """List the jars, some at a time."""
    jars = await reader.rows(
        Jar,
        "select id, label, content from jars where id > %(after)s order by id limit %(limit)s",
        {"after": int(command.cursor or 0), "limit": command.limit + 1},
    )
    page = jars[: command.limit]
    return JarPage(page, str(page[-1].id) if len(jars) > command.limit else None)


async def get_jar(reader: Reader[Any], caller: Caller, command: OneJar) -> Jar:
    """Look into a jar."""
    jar = await reader.row(Jar, "select id, label, content from jars where id = %(id)s", {"id": command.jar_id})
    if jar is None:
        raise NOT_FOUND(f"No jar has the id {command.jar_id}.")
    return jar


async def fill_jar(tx: Tx[Any], caller: Caller, command: FillJar) -> Jar:
    """Put something into a jar."""
    jar = await get_jar(tx, caller, OneJar(jar_id=command.jar_id))
    if jar.content + command.grams > 100:
        raise JAR_FULL(f"{command.grams} g do not fit.", room=100 - jar.content)
    await tx.run(
        "update jars set content = content + %(grams)s where id = %(id)s",
        {"grams": command.grams, "id": command.jar_id},
    )
    await announce(tx, f"jar://{command.jar_id}")
    return Jar(jar.id, jar.label, jar.content + command.grams)


async def add_jar(tx: Tx[Any], caller: Caller, command: OneJar) -> Jar:
    """Add an empty jar."""
    await tx.run("insert into jars (id, label) values (%(id)s, 'New')", {"id": command.jar_id})
    await announce(tx, f"jar://{command.jar_id}", listed=True)
    return Jar(command.jar_id, "New", 0)


async def empty_jar(tx: Tx[Any], caller: Caller, command: OneJar) -> None:
    """Empty a jar."""
    await tx.run("update jars set content = 0 where id = %(id)s", {"id": command.jar_id})
    await announce(tx, f"jar://{command.jar_id}")


async def weigh_jars(reader: Reader[Any], batch: Batch[OneJar]) -> Sequence[Jar | Problem]:
    """Weigh many jars in one statement."""
    by_id = {jar.id: jar for jar in await reader.rows(Jar, "select id, label, content from jars")}
    return [by_id.get(call.command.jar_id) or NOT_FOUND("No such jar.") for call in batch.calls]


async def plan_window(reader: Reader[Any], caller: Caller, command: PlanWindow) -> Window:
    """Plan when the pantry is open."""
    return Window(command.opens_at, (command.closes_at - command.opens_at).total_seconds() / 3600)


async def list_labels(reader: Reader[Any], caller: Caller, command: Nothing) -> list[str]:
    """List what is written on the jars."""
    return [label for (label,) in await reader.tuples("select label from jars order by id")]


async def break_shelf(reader: Reader[Any], caller: Caller, command: Nothing) -> Sum:
    """Fail for a reason nobody foresaw."""
    raise RuntimeError("the secret of the shelf")


async def ask_for_more(reader: Reader[Any], caller: Caller, command: Nothing) -> Sum:
    """Find out late that a scope is missing."""
    raise INSUFFICIENT_SCOPE("This jar needs more.", scope="own_pantry")


async def hurry(reader: Reader[Any], caller: Caller, command: Nothing) -> Sum:
    """Be told to slow down."""
    raise RATE_LIMITED(retry_after=7)


async def faint(reader: Reader[Any], caller: Caller, command: Nothing) -> Sum:
    """Be unable to answer for a while."""
    raise SERVICE_UNAVAILABLE(retry_after=3)


async def announce(tx: Tx[Any], uri: str, *, listed: bool = False) -> None:
    """Tell all listeners that a jar has changed, once it has."""
    change = await tx.value("select nextval('jar_changes')")
    await tx.notify(CHANNEL, f"{change} {uri} {'listed' if listed else ''}")


OPERATIONS = (
    Operation("add_numbers", None, read(add_numbers), READS),
    Operation("list_jars", None, read(list_jars), READS, "read_jars"),
    Operation("get_jar", "GET /jars/{jar_id}", read(get_jar), READS, "read_jars"),
    Operation("weigh_jars", None, read_batched(weigh_jars), READS, "read_jars"),
    Operation("fill_jar", None, single(fill_jar), ADDS, "write_jars"),
    Operation("add_jar", None, single(add_jar), SETS, "write_jars"),
    Operation("empty_jar", None, single(empty_jar), OVERWRITES, "write_jars"),
    Operation("plan_window", None, read(plan_window), READS),
    Operation("list_labels", None, read(list_labels), READS, "read_jars"),
    Operation("break_shelf", None, read(break_shelf), READS),
    Operation("ask_for_more", None, read(ask_for_more), READS),
    Operation("hurry", None, read(hurry), READS),
    Operation("faint", None, read(faint), READS),
    Operation("hidden", "GET /hidden", read(add_numbers)),
)

DOCUMENTS = (
    mcp.Document(
        mcp.ResourceEntry("pantry://rules", "rules", "House rules", "How to behave.", "text/markdown"), "# Be tidy\n"
    ),
)
TEMPLATES = (mcp.Template("jar://{jar_id}", "get_jar", "jar", "Jar", "A jar, and how full it is."),)


def entries(page: JarPage) -> list[mcp.ResourceEntry]:
    """Jars as resources."""
    return [mcp.ResourceEntry(f"jar://{jar.id}", f"jar-{jar.id}", jar.label, "A jar.") for jar in page.jars]


AGENTS = mcp.EndpointConfig(
    name="pantry",
    title="Pantry",
    version="1.0.0",
    base_url="http://pantry.test",
    instructions="List the jars before you fill one.",
    documents=DOCUMENTS,
    templates=TEMPLATES,
    listed_by=mcp.ListedBy("list_jars", entries),
    limit="calls",
    resource_metadata="http://pantry.test/.well-known/oauth-protected-resource/mcp",
    scope="read_jars",
    origins=frozenset({"https://friend.example"}),
)


class Pantry:
    """The service with its keys and its feed."""

    def __init__(
        self,
        database_url: str,
        *,
        per_hour: int = 1_000_000_000,
        silent: bool = False,
        operations: Operations = OPERATIONS,
        **agents: Any,
    ) -> None:
        self.feed = Feed[mcp.Change]()
        self.database = Database(database_url, None, size=4, name="pantry")
        self.database.pool.connection_class = ReusedConnection
        changes = None if silent else self.changes
        ring = KeyRing(self.database, find_callers)
        self.service = Service(
            database=self.database,
            runner=Runner(operations, self.database),
            operations=operations,
            authenticate=ring.caller,
            endpoints=Endpoints(caches=[ring.forgetting, self.listening]),
            limits=Limits("memory://", {"calls": RateLimitItemPerHour(per_hour)}),
            streams=Streams(ANY_BOUND),
            agents=replace(AGENTS, changes=changes, **agents),
        )

    async def changes(self, caller: Caller) -> Feed[mcp.Change]:
        return self.feed

    def listening(self) -> AbstractContextManager[None]:
        return self.database.listen(CHANNEL, self._publish)

    def _publish(self, payload: str) -> None:
        if payload:
            position, uri, listed = payload.split(" ")
            self.feed.publish(int(position), mcp.Change([uri], listed=bool(listed)))

    async def key(self, *scopes: str) -> str:
        """A new key with these scopes."""
        key = new_key()
        statement = "insert into jar_keys (hash, scopes) values (%(hash)s, %(scopes)s)"
        await self.database.transact(lambda tx: tx.run(statement, {"hash": digest(key), "scopes": list(scopes)}))
        return key

    async def change_key(self, key: str | None, statement: LiteralString) -> None:
        hash = digest(key or "")

        async def work(tx: Tx[Any]) -> None:
            await tx.run(statement, {"hash": hash})
            await tx.revoke(api_keys.CHANNEL, hash.hex())

        await self.database.transact(work)


async def find_callers(reader: Reader[Any], hashes: Sequence[bytes]) -> Mapping[bytes, Caller]:
    """The callers that keys belong to."""
    statement: LiteralString = "select hash, id, scopes from jar_keys where hash = any(%(hashes)s)"
    rows = await reader.tuples(statement, {"hashes": list(hashes)})
    return {bytes(hash): api_key(id, 1, frozenset(scopes)) for hash, id, scopes in rows}
