"""Approvals: what a person sees of the requests that wait, approves and declines.

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

from holdfast.accounts.agents.requests import OF_CREDENTIAL, CredentialId, StoredCall, answer_key
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import INSUFFICIENT_SCOPE, NOT_FOUND, Problem
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.running.operation import Operations
from holdfast.kit.running.runner import Runner
from holdfast.kit.security.service_secret import UnsealError

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


class RequestEnded(Exception):
    """The request does not wait any more: it was approved, declined, or is older than 24 hours."""


class RequestChanged(Exception):
    """What the request is about is not any more as the person saw it."""


class Credential(NamedTuple):
    """A key or an app as it is now. `name`: empty if it has none. `caller`: None if it has ended."""

    name: str
    caller: Caller | None


ENDED = Credential("", None)


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


_WAITING_REQUESTS: LiteralString = """
    select id, key_id, client_id, operation, sealed, requested_at, expires_at from agent_requests
     where tenant_id = %(tenant_id)s and status = 'waiting' and expires_at > clock_timestamp()
"""


FindCredentials = Callable[[Reader[Any], int, Collection[CredentialId]], Awaitable[Mapping[CredentialId, Credential]]]


RunRead = Callable[[Callable[[Reader[Any]], Awaitable[Any]]], Awaitable[Any]]
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

    async def list_waiting(
        self, run_read: RunRead, tenant_id: int, limit: int, credential: CredentialId | None = None
    ) -> Sequence[WaitingRequest]:
        """The requests that wait for the people of a tenant, the oldest first. `credential`: only those of this one."""
        parameters = {"tenant_id": tenant_id, "limit": limit}
        if credential is None:
            return await self._find_readable(run_read, f"{_WAITING_REQUESTS} order by id limit %(limit)s", parameters)
        statement: LiteralString = f"{_WAITING_REQUESTS} and {OF_CREDENTIAL} order by id limit %(limit)s"
        return await self._find_readable(run_read, statement, {**parameters, **credential._asdict()})

    async def find(self, run_read: RunRead, tenant_id: int, id: int) -> WaitingRequest | None:
        """A request that waits; None: it does not wait any more."""
        requests = await self._find_readable(
            run_read, f"{_WAITING_REQUESTS} and id = %(id)s", {"tenant_id": tenant_id, "id": id}
        )
        return requests[0] if requests else None

    async def _find_readable(
        self, run_read: RunRead, statement: LiteralString, parameters: Mapping[str, Any]
    ) -> Sequence[WaitingRequest]:
        """Requests, without those that cannot be read any more.

        The secret key may have changed, or another version of the service has stored them.
        """
        tenant_id = parameters["tenant_id"]
        rows: Sequence[RequestRow] = await run_read(lambda reader: reader.rows(RequestRow, statement, parameters))
        readable = [(row, *calls) for row in rows if (calls := self._decode_call(row))]
        if not readable:
            return []
        ids = {row.credential for row, _, _ in readable}
        credentials = await self._database.read(lambda reader: self._find_credentials(reader, tenant_id, ids))
        commands = [call for _, _, call in readable]
        facts_of_calls: Sequence[Facts] = await run_read(
            lambda reader: self.read_facts(reader, tenant_id, commands, locks=False)
        )
        return [
            _waiting_request(row, stored, call.command, facts, credentials.get(row.credential, ENDED))
            for (row, stored, call), facts in zip(readable, facts_of_calls, strict=True)
        ]

    def _decode_call(self, row: RequestRow) -> tuple[StoredCall, RequestedCall] | None:
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
        stored.key or answer_key(row.id),
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

    async def list_waiting(self, person: Caller, limit: int) -> Sequence[WaitingRequest]:
        """The requests that wait for a person, the oldest first."""
        return await self._reader.list_waiting(partial(self._runner.read, person), person.tenant, limit)

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
