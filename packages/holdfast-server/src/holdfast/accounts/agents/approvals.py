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

from holdfast.accounts.agents.requests import OF_CREDENTIAL, CredentialId, SealedRequest, answer_key
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import INSUFFICIENT_SCOPE, NOT_FOUND, Problem
from holdfast.kit.operations.operation import Operations
from holdfast.kit.operations.runner import Runner
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.security.service_secret import UnsealError

Facts = Mapping[str, Any]
"""What a person is shown of the things that a request is about, as they are now."""


class RequestEnded(Exception):
    """The request does not wait any more: it was approved, declined, or is older than 24 hours."""


class RequestChanged(Exception):
    """The facts of the request have changed since the person saw them."""


class Credential(NamedTuple):
    """A key or an app as it is now. `name`: empty if it has none. `caller`: None if it has ended."""

    name: str
    caller: Caller | None


ENDED_CREDENTIAL = Credential("", None)


class _RequestRow(Struct, frozen=True):
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

    agent_name    the name of the key or the app, or what its program calls itself; empty: none of them
    command       what the agent asks for: a command of the operation
    key           the idempotency key of the call
    caller        the key or the app, with the rights and limits that it has now; None: it has ended
    facts         what the request is about, as it is now; empty until they are read
    """

    id: int
    agent_name: str
    operation: str
    command: Any
    key: str
    requested_at: datetime
    expires_at: datetime
    caller: Caller | None
    facts: Facts = {}

    @property
    def has_ended(self) -> bool:
        """Whether the key or the app has ended: the request can only be declined."""
        return self.caller is None

    @property
    def facts_version(self) -> str:
        """The version of the facts. A form that approves has it."""
        return version_of(self.facts)


class ReadFacts(Protocol):
    """Reads what requests are about."""

    async def __call__(
        self, reader: Reader[Any], tenant_id: int, requests: Sequence[WaitingRequest], /, *, locks: bool
    ) -> Sequence[Facts]:
        """The facts of each request. `locks`: so that they stay as they are until the commit."""
        ...


_WAITING_REQUESTS: LiteralString = """
    select id, key_id, client_id, operation, sealed, requested_at, expires_at from agent_requests
     where tenant_id = %(tenant_id)s and status = 'waiting' and expires_at > clock_timestamp()
"""


FindCredentials = Callable[[Reader[Any], int, Collection[CredentialId]], Awaitable[Mapping[CredentialId, Credential]]]
"""Finds credentials of a tenant. It leaves out those that are not there any more."""

ReadDatabase = Callable[[Callable[[Reader[Any]], Awaitable[Any]]], Awaitable[Any]]
"""Runs statements that read: `Database.read`, or `Runner.read` in the share of a person."""


class RequestFinder:
    """Finds requests that wait, each with its credential and with what it is about, as both are now.

    operations    the table of the service
    database      reads credentials; where shops are isolated, it is not restricted to one
    """

    def __init__(
        self, operations: Operations, database: Database[Any], find_credentials: FindCredentials, read_facts: ReadFacts
    ) -> None:
        self.operations = {operation.name: operation for operation in operations}
        self._database = database
        self._find_credentials = find_credentials
        self.read_facts = read_facts

    async def list_waiting(
        self, read: ReadDatabase, tenant_id: int, limit: int, credential: CredentialId | None = None
    ) -> Sequence[WaitingRequest]:
        """The requests that wait for the people of a tenant, the oldest first. `credential`: only those of this one."""
        parameters = {"tenant_id": tenant_id, "limit": limit}
        if credential is None:
            return await self._find_readable(read, f"{_WAITING_REQUESTS} order by id limit %(limit)s", parameters)
        statement: LiteralString = f"{_WAITING_REQUESTS} and {OF_CREDENTIAL} order by id limit %(limit)s"
        return await self._find_readable(read, statement, {**parameters, **credential._asdict()})

    async def find(self, read: ReadDatabase, tenant_id: int, id: int) -> WaitingRequest | None:
        """A request that waits; None: it does not wait any more."""
        statement: LiteralString = f"{_WAITING_REQUESTS} and id = %(id)s"
        requests = await self._find_readable(read, statement, {"tenant_id": tenant_id, "id": id})
        return requests[0] if requests else None

    async def _find_readable(
        self, read: ReadDatabase, statement: LiteralString, parameters: Mapping[str, Any]
    ) -> Sequence[WaitingRequest]:
        """Requests, without those that cannot be read any more.

        The secret key may have changed, or another version of the service has stored them.
        """
        tenant_id = parameters["tenant_id"]
        rows: Sequence[_RequestRow] = await read(lambda reader: reader.rows(_RequestRow, statement, parameters))
        if not rows:
            return []
        ids = {row.credential for row in rows}
        credentials = await self._database.read(lambda reader: self._find_credentials(reader, tenant_id, ids))
        opened_requests = [self._open(row, credentials.get(row.credential, ENDED_CREDENTIAL)) for row in rows]
        requests = [request for request in opened_requests if request]
        if not requests:
            return []
        facts_of_requests: Sequence[Facts] = await read(
            lambda reader: self.read_facts(reader, tenant_id, requests, locks=False)
        )
        return [replace(request, facts=facts) for request, facts in zip(requests, facts_of_requests, strict=True)]

    def _open(self, row: _RequestRow, credential: Credential) -> WaitingRequest | None:
        """A request without its facts; None if it cannot be read any more."""
        operation = self.operations.get(row.operation)
        if operation is None:
            return None
        try:
            sealed = msgspec.json.decode(self._database.resources.secret.unseal(row.sealed), type=SealedRequest)
            command = msgspec.json.decode(sealed.command, type=operation.command)
        except (UnsealError, msgspec.MsgspecError):
            return None
        return WaitingRequest(
            row.id,
            credential.name or sealed.program,
            row.operation,
            command,
            sealed.key or answer_key(row.id),
            row.requested_at,
            row.expires_at,
            credential.caller and replace(credential.caller, program=sealed.program, is_agent=True),
        )


class RequestApprovals:
    """Shows a person what agents ask for, approves it and declines it. `runner` runs the operations."""

    def __init__(self, finder: RequestFinder, runner: Runner) -> None:
        self._finder = finder
        self._runner = runner

    async def list_waiting(self, person: Caller, limit: int) -> Sequence[WaitingRequest]:
        """The requests that wait for a person, the oldest first."""
        return await self._finder.list_waiting(partial(self._runner.read, person), person.tenant, limit)

    async def find(self, person: Caller, id: int) -> WaitingRequest:
        """A request that waits for a person. Raises `not_found`."""
        if request := await self._finder.find(partial(self._runner.read, person), person.tenant, id):
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
        operation = self._finder.operations[request.operation]
        if request.caller is None:
            raise RequestEnded
        if not request.caller.has(operation.scope):
            raise INSUFFICIENT_SCOPE(scope=operation.scope)

        async def end_if_unchanged(tx: Tx[Any]) -> None:
            await end_request(tx, person.tenant, id, "done")
            [facts] = await self._finder.read_facts(tx, person.tenant, [request], locks=True)
            if version_of(facts) != facts_version:
                raise RequestChanged

        await self._runner.run_approved(operation, request.caller, request.command, request.key, end_if_unchanged)

    async def decline(self, person: Caller, id: int) -> None:
        """Decline a request. Raises `RequestEnded`."""
        await self._runner.transact(person, lambda tx: end_request(tx, person.tenant, id, "declined"))


async def end_request(tx: Tx[Any], tenant_id: int, id: int, status: Literal["done", "declined"]) -> None:
    """End a request that waits, and forget its contents. Raises `RequestEnded`."""
    has_ended = await tx.value(
        """
        update agent_requests set status = %(status)s, slot = null, sealed = '', ended_at = now()
         where id = %(id)s and tenant_id = %(tenant_id)s and status = 'waiting' and expires_at > clock_timestamp()
        returning true
        """,
        {"id": id, "tenant_id": tenant_id, "status": status},
    )
    if not has_ended:
        raise RequestEnded


def version_of(facts: Facts) -> str:
    """The version of facts. Two that differ have different ones."""
    return sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()[:32]
