"""Requests of agents that ask a person first: a call is stored, and runs once when a person approves it.

A person approves what the page has shown: the present facts are compared, under a lock, in the transaction that runs
the call and ends the request. So two clicks, two processes or a killed process never run it twice, and a person never
approves a change of something else. A call that is refused leaves its request waiting. See decision 110.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any, Literal, LiteralString, NamedTuple, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import APPROVAL_DECLINED, APPROVAL_REQUIRED, INSUFFICIENT_SCOPE, NOT_FOUND, Problem
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.running.operation import ApprovedCall, Operation, Operations
from holdfast.kit.running.runner import Runner
from holdfast.kit.security.service_secret import UnsealError

MAX_WAITING_REQUESTS = 50
"""The most requests of one credential that wait. The schema has this many slots."""

WAITING_REQUESTS = Bound(
    name="Requests of agents that wait for a person",
    service="both",
    total="none: each credential has its own",
    tenant=f"{MAX_WAITING_REQUESTS} for each key or connected app, for 24 hours",
    address="none: only keys and apps ask",
    reserved="-",
    stranger="Nothing: each takes only its own places.",
)

REPEAT_SECONDS = 30
"""Seconds after which an agent is asked to repeat its call."""

LOCK_SPACE = 0x61736B31
"""The first key of the advisory lock ("ask1") that a credential holds while it stores a request."""

DELETE_BATCH_SIZE = 5_000
"""Rows that one statement deletes."""

Facts = Mapping[str, Any]
"""What a person is shown of the things that a request is about, as they are now."""


class RequestedCall(NamedTuple):
    """What an agent asks for: a command of the operation `name`."""

    name: str
    command: Any


class ReadFacts(Protocol):
    """Reads what commands are about."""

    async def __call__(
        self, reader: Reader[Any], tenant_id: int, calls: Sequence[RequestedCall], /, *, locks: bool
    ) -> Sequence[Facts]:
        """The facts of each call. `locks`: so that they stay as they are until the commit."""
        ...


def waiting_requests_count(tenant: LiteralString) -> LiteralString:
    """SQL: how many requests wait for the people of a tenant."""
    return f"""
    (select count(*) from agent_requests
      where agent_requests.tenant_id = {tenant} and status = 'waiting' and agent_requests.expires_at > now())
    """


class RequestEnded(Exception):
    """The request does not wait any more: it was approved, declined, or is older than 24 hours."""


class RequestChanged(Exception):
    """What the request is about is not any more as the person saw it."""


class Credential(NamedTuple):
    """A key or an app as it is now. `name`: empty if it has none. `caller`: None if it has ended."""

    name: str
    caller: Caller | None


ENDED = Credential("", None)


class StoredCall(Struct, frozen=True):
    """The sealed part of a request. `key`: the idempotency key of the call; None: it had none."""

    command: msgspec.Raw
    key: str | None
    program: str


class CredentialId(NamedTuple):
    """The id of an API key, or that of the client of a connected app."""

    key_id: int | None
    client_id: str | None


class RequestRow(Struct, frozen=True):
    """A row of `agent_requests` that waits."""

    id: int
    key_id: int | None
    client_id: str | None
    operation: str
    sealed: bytes
    requested_at: datetime
    expires_at: datetime

    @property
    def credential(self) -> CredentialId:
        return CredentialId(self.key_id, self.client_id)


class WaitingRequest(Struct, frozen=True):
    """A request that waits for a person.

    agent_name       the name of the key or the app, or what its program calls itself; empty: none of them
    facts            what it is about, as it is now
    facts_version    the version of these facts: approving sends it back
    has_ended        whether the key or the app has ended: the request can only be declined
    """

    id: int
    agent_name: str
    operation: str
    command: Any
    key: str
    facts: Facts
    facts_version: str
    requested_at: datetime
    expires_at: datetime
    caller: Caller | None

    @property
    def has_ended(self) -> bool:
        return self.caller is None


class _EarlierRequest(NamedTuple):
    """A request that was stored for the same call. `is_recent`: it has not expired."""

    id: int
    status: str
    is_answered: bool
    expires_at: datetime
    is_recent: bool


class AgentRequests:
    """The requests of the agents of one service. It is the `ApprovalGate` of its runner.

    covered            the names of the operations that wait for a person
    address            the address of the page of requests; the id follows it
    has_grants         whether an access token names a grant; otherwise it stands for an API key
    """

    def __init__(self, covered: Collection[str], address: str, *, has_grants: bool) -> None:
        self._covered = frozenset(covered)
        self._address = address
        self._has_grants = has_grants

    def covers(self, operation: Operation) -> bool:
        return operation.name in self._covered

    async def request_approval(
        self, tx: Tx[Any], operation: Operation, caller: Caller, command: Command, key: str | None
    ) -> Problem | ApprovedCall:
        """Store the call of an agent, so that a person can approve it. The same call is stored once.

        Returns the problem to answer with, unless the call was approved and done.
        """
        credential = {"tenant_id": caller.tenant, "key_id": caller.id, "client_id": None}
        if self._has_grants and caller.principal == "access_token":
            find = "select client_id from oauth_grants where id = %(id)s"
            credential |= {"key_id": None, "client_id": await tx.value(find, {"id": caller.id})}
        content = msgspec.json.encode(command)
        parts = [*map(str, credential.values()), operation.name, "key" if key else "", key or ""]
        digest = sha256(msgspec.json.encode(parts) + content).digest()
        lock = int.from_bytes(sha256(msgspec.json.encode(parts[:3])).digest()[:4], signed=True)
        # A separate statement, so that the next one sees what other processes have stored for this credential.
        await tx.run("select pg_advisory_xact_lock(%(space)s, %(lock)s)", {"space": LOCK_SPACE, "lock": lock})
        await _expire(tx, credential)
        if (known := await self._find_earlier(tx, digest, key)) is not None:
            return known
        call = StoredCall(msgspec.Raw(content), key, caller.program)
        rows = await tx.tuples(
            f"""
            insert into agent_requests (tenant_id, key_id, client_id, slot, digest, operation, sealed)
            select %(tenant_id)s, %(key_id)s, %(client_id)s, slot, %(digest)s, %(operation)s, %(sealed)s
              from generate_series(1, %(limit)s) as slot
             where slot not in (select slot from agent_requests
                                 where {_OF_CREDENTIAL} and status = 'waiting')
             order by slot limit 1
            returning id, expires_at
            """,
            {
                **credential,
                "limit": MAX_WAITING_REQUESTS,
                "digest": digest,
                "operation": operation.name,
                "sealed": tx.resources.secret.seal(msgspec.json.encode(call).decode()),
            },
        )
        if not rows:
            return APPROVAL_REQUIRED(
                f"A person must approve this first, and {MAX_WAITING_REQUESTS} requests wait already.",
                hint="Ask the person to look at what waits, at `approve_url`. Then repeat the call.",
                status="not_stored",
                approve_url=self._address,
                retry_after=REPEAT_SECONDS,
            )
        [(id, expires_at)] = rows
        return self._waiting(id, expires_at)

    async def _find_earlier(self, tx: Tx[Any], digest: bytes, key: str | None) -> Problem | ApprovedCall | None:
        """The answer to a call that was made before; None: it is a new request."""
        earlier = await tx.row(
            _EarlierRequest,
            """
            select id, status, is_answered, expires_at, expires_at > now() as is_recent from agent_requests
             where digest = %(digest)s order by id desc limit 1
            """,
            {"digest": digest},
        )
        if earlier is None:
            return None
        if earlier.status == "waiting":
            return self._waiting(earlier.id, earlier.expires_at)
        if earlier.status == "declined" and earlier.is_recent:
            return APPROVAL_DECLINED(request_id=earlier.id, status=earlier.status)
        if earlier.status == "done" and key is None and earlier.is_recent and not earlier.is_answered:
            await tx.run("update agent_requests set is_answered = true where id = %(id)s", {"id": earlier.id})
            return ApprovedCall(_answer_key(earlier.id))
        return None

    def _waiting(self, id: int, expires_at: datetime) -> Problem:
        return APPROVAL_REQUIRED(
            request_id=id,
            status="waiting",
            approve_url=f"{self._address}/{id}",
            expires_at=expires_at.isoformat().replace("+00:00", "Z"),
            retry_after=REPEAT_SECONDS,
        )


def _answer_key(id: int) -> str:
    """The idempotency key under which the answer to a call without one is stored."""
    return f"approved request {id}"


_OF_CREDENTIAL: LiteralString = """
    (key_id = %(key_id)s::bigint or tenant_id = %(tenant_id)s and client_id = %(client_id)s::text)
"""


async def _expire(tx: Tx[Any], credential: Mapping[str, Any]) -> None:
    await tx.run(
        f"""
        update agent_requests set status = 'expired', slot = null, sealed = '', ended_at = now()
         where {_OF_CREDENTIAL} and status = 'waiting' and expires_at <= now()
        """,
        credential,
    )


_WAITING: LiteralString = """
    select id, key_id, client_id, operation, sealed, requested_at, expires_at from agent_requests
     where tenant_id = %(tenant_id)s and status = 'waiting' and expires_at > clock_timestamp()
"""


FindCredentials = Callable[[Reader[Any], int, Collection[CredentialId]], Awaitable[Mapping[CredentialId, Credential]]]


Read = Callable[[Callable[[Reader[Any]], Awaitable[Any]]], Awaitable[Any]]
"""Runs a read, such as one in the share of a person."""


class RequestReader:
    """Reads requests that wait, each with its credential and with what it is about, as both are now.

    operations          the table of the service
    database            reads credentials; where shops are isolated, it is not restricted to one
    find_credentials    finds credentials of a tenant; it leaves out those that are not there any more
    read_facts          reads what requests are about
    """

    def __init__(
        self, operations: Operations, database: Database[Any], find_credentials: FindCredentials, read_facts: ReadFacts
    ) -> None:
        self.operations = {operation.name: operation for operation in operations}
        self._database = database
        self._find_credentials = find_credentials
        self.read_facts = read_facts

    async def waiting(
        self, read: Read, tenant_id: int, limit: int, credential: CredentialId | None = None
    ) -> Sequence[WaitingRequest]:
        """The requests that wait for the people of a tenant, the oldest first. `credential`: only those of this one."""
        parameters = {"tenant_id": tenant_id, "limit": limit}
        if credential is None:
            return await self._find_readable(read, f"{_WAITING} order by id limit %(limit)s", parameters)
        statement: LiteralString = f"{_WAITING} and {_OF_CREDENTIAL} order by id limit %(limit)s"
        return await self._find_readable(read, statement, {**parameters, **credential._asdict()})

    async def find(self, read: Read, tenant_id: int, id: int) -> WaitingRequest | None:
        """A request that waits; None: it does not wait any more."""
        requests = await self._find_readable(read, f"{_WAITING} and id = %(id)s", {"tenant_id": tenant_id, "id": id})
        return requests[0] if requests else None

    async def _find_readable(
        self, read: Read, statement: LiteralString, parameters: Mapping[str, Any]
    ) -> Sequence[WaitingRequest]:
        """Requests, without those that cannot be read any more.

        The secret key may have changed, or another version of the service has stored them.
        """
        tenant_id = parameters["tenant_id"]
        rows: Sequence[RequestRow] = await read(lambda reader: reader.rows(RequestRow, statement, parameters))
        readable = [(row, *calls) for row in rows if (calls := self._calls(row))]
        if not readable:
            return []
        ids = {row.credential for row, _, _ in readable}
        credentials = await self._database.read(lambda reader: self._find_credentials(reader, tenant_id, ids))
        commands = [call for _, _, call in readable]
        every_facts: Sequence[Facts] = await read(
            lambda reader: self.read_facts(reader, tenant_id, commands, locks=False)
        )
        return [
            _waiting_request(row, stored, call.command, facts, credentials.get(row.credential, ENDED))
            for (row, stored, call), facts in zip(readable, every_facts, strict=True)
        ]

    def _calls(self, row: RequestRow) -> tuple[StoredCall, RequestedCall] | None:
        """The stored call of a request, and its command; None if they cannot be read any more."""
        operation = self.operations.get(row.operation)
        if operation is None:
            return None
        try:
            stored = msgspec.json.decode(self._database.resources.secret.unseal(row.sealed), type=StoredCall)
            return stored, RequestedCall(row.operation, msgspec.json.decode(stored.command, type=operation.command))
        except (UnsealError, msgspec.MsgspecError):
            return None


def _waiting_request(
    row: RequestRow, stored: StoredCall, command: Any, facts: Facts, credential: Credential
) -> WaitingRequest:
    return WaitingRequest(
        row.id,
        credential.name or stored.program,
        row.operation,
        command,
        stored.key or _answer_key(row.id),
        facts,
        version_of(facts),
        row.requested_at,
        row.expires_at,
        credential.caller and replace(credential.caller, program=stored.program, is_agent=True),
    )


class RequestApprovals:
    """Shows a person what agents ask for, approves it and declines it. `runner` runs the operations."""

    def __init__(self, reader: RequestReader, runner: Runner) -> None:
        self._reader = reader
        self._runner = runner

    async def waiting(self, person: Caller, limit: int) -> Sequence[WaitingRequest]:
        """The requests that wait for a person, the oldest first."""
        return await self._reader.waiting(partial(self._runner.read, person), person.tenant, limit)

    async def find(self, person: Caller, id: int) -> WaitingRequest:
        """A request that waits for a person. Raises `not_found`."""
        if request := await self._reader.find(partial(self._runner.read, person), person.tenant, id):
            return request
        raise NOT_FOUND()

    async def approve(self, person: Caller, id: int, facts_version: str) -> None:
        """Run a request, with the rights and limits that its credential has now.

        Raises `RequestEnded`, `RequestChanged` if the facts have another version now, and the `Problem` of a call that
        is refused: then the request goes on waiting.
        """
        try:
            request = await self.find(person, id)
        except Problem as problem:
            if problem.type is NOT_FOUND:
                raise RequestEnded from problem
            raise
        operation = self._reader.operations[request.operation]
        if request.caller is None:
            raise RequestEnded
        if not request.caller.has(operation.scope):
            raise INSUFFICIENT_SCOPE(scope=operation.scope)

        async def claim(tx: Tx[Any]) -> None:
            await end_request(tx, person.tenant, id, "done")
            call = RequestedCall(request.operation, request.command)
            [facts] = await self._reader.read_facts(tx, person.tenant, [call], locks=True)
            if version_of(facts) != facts_version:
                raise RequestChanged

        await self._runner.run_approved(operation, request.caller, request.command, request.key, claim)

    async def decline(self, person: Caller, id: int) -> None:
        """Decline a request. Raises `RequestEnded`."""
        await self._runner.transact(person, lambda tx: end_request(tx, person.tenant, id, "declined"))


async def end_request(tx: Tx[Any], tenant_id: int, id: int, status: Literal["done", "declined"]) -> None:
    """End a request that waits, and forget its contents. Raises `RequestEnded`."""
    ended = await tx.value(
        """
        update agent_requests set status = %(status)s, slot = null, sealed = '', ended_at = now()
         where id = %(id)s and tenant_id = %(tenant_id)s and status = 'waiting' and expires_at > clock_timestamp()
        returning true
        """,
        {"id": id, "tenant_id": tenant_id, "status": status},
    )
    if not ended:
        raise RequestEnded


def version_of(facts: Facts) -> str:
    """The version of facts. Two that differ have different ones."""
    return sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()[:32]


async def forget_requests(tx: Tx[Any]) -> int:
    """Delete a batch of the requests that are two days old. Returns the number deleted."""
    return await tx.value(
        """
        with deleted as (
            delete from agent_requests
             where id = any(array(select id from agent_requests where requested_at < now() - interval '2 days'
                                   order by requested_at limit %(limit)s for update skip locked))
         returning 1)
        select count(*) from deleted
        """,
        {"limit": DELETE_BATCH_SIZE},
    )
