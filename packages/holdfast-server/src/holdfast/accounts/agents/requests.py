"""Requests of agents that ask a person first: a call is stored, until a person approves or declines it.

The same call is stored once, however often it is repeated. Its answer says where a person approves it (`approvals.py`).
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, LiteralString, NamedTuple

import msgspec
from msgspec import Struct

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import APPROVAL_DECLINED, APPROVAL_REQUIRED, Problem
from holdfast.kit.operations.operation import ApprovedCall, Operation
from holdfast.kit.postgres.database import Tx

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


def waiting_requests_count(tenant: LiteralString) -> LiteralString:
    """SQL: how many requests wait for the people of a tenant."""
    return f"""
    (select count(*) from agent_requests
      where agent_requests.tenant_id = {tenant} and status = 'waiting' and agent_requests.expires_at > now())
    """


class SealedRequest(Struct, frozen=True):
    """The sealed part of a request. `key`: the idempotency key of the call; None: it had none."""

    command: msgspec.Raw
    key: str | None
    program: str


class CredentialId(NamedTuple):
    """The id of an API key, or that of the client of a connected app."""

    key_id: int | None
    client_id: str | None


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
        if (earlier_request := await self._find_earlier(tx, digest, key)) is not None:
            return earlier_request
        sealed = SealedRequest(msgspec.Raw(content), key, caller.program)
        rows = await tx.tuples(
            f"""
            insert into agent_requests (tenant_id, key_id, client_id, slot, digest, operation, sealed)
            select %(tenant_id)s, %(key_id)s, %(client_id)s, slot, %(digest)s, %(operation)s, %(sealed)s
              from generate_series(1, %(limit)s) as slot
             where slot not in (select slot from agent_requests
                                 where {OF_CREDENTIAL} and status = 'waiting')
             order by slot limit 1
            returning id, expires_at
            """,
            {
                **credential,
                "limit": MAX_WAITING_REQUESTS,
                "digest": digest,
                "operation": operation.name,
                "sealed": tx.resources.secret.seal(msgspec.json.encode(sealed).decode()),
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
        return self._approval_required(id, expires_at)

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
            return self._approval_required(earlier.id, earlier.expires_at)
        if earlier.status == "declined" and earlier.is_recent:
            return APPROVAL_DECLINED(request_id=earlier.id, status=earlier.status)
        if earlier.status == "done" and key is None and earlier.is_recent and not earlier.is_answered:
            await tx.run("update agent_requests set is_answered = true where id = %(id)s", {"id": earlier.id})
            return ApprovedCall(answer_key(earlier.id))
        return None

    def _approval_required(self, id: int, expires_at: datetime) -> Problem:
        return APPROVAL_REQUIRED(
            request_id=id,
            status="waiting",
            approve_url=f"{self._address}/{id}",
            expires_at=expires_at.isoformat().replace("+00:00", "Z"),
            retry_after=REPEAT_SECONDS,
        )


def answer_key(id: int) -> str:
    """The idempotency key under which the answer to a call without one is stored."""
    return f"approved request {id}"


OF_CREDENTIAL: LiteralString = """
    (key_id = %(key_id)s::bigint or tenant_id = %(tenant_id)s and client_id = %(client_id)s::text)
"""


async def _expire(tx: Tx[Any], credential: Mapping[str, Any]) -> None:
    await tx.run(
        f"""
        update agent_requests set status = 'expired', slot = null, sealed = '', ended_at = now()
         where {OF_CREDENTIAL} and status = 'waiting' and expires_at <= now()
        """,
        credential,
    )


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
