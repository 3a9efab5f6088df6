"""What agents did: it is stored by the calls of agents, read by the organizer, and deleted after 90 days."""

from collections.abc import Sequence
from typing import Any

from holdfast.events.agent_actions import sql
from holdfast.events.agent_actions.model import OPERATIONS, REPEATABLE, AgentAction, ListAgentActions, subject_of
from holdfast.events.resources import Reader, Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.run_modes import Call, read

DELETE_BATCH_SIZE = 5_000
"""Rows that one statement deletes."""


class AgentActionLog:
    """Stores what agents did for organizers, as `runner.AgentLog`; not for admin keys, which belong to no organizer."""

    def covers(self, operation: Operation) -> bool:
        return operation.name in OPERATIONS

    async def version(self, tx: Tx, operation: Operation, command: Any) -> str | None:
        return await sql.find_version(tx, operation.name, command) if operation.name in REPEATABLE else None

    async def store(self, tx: Tx, operation: Operation, done: Sequence[tuple[Call[Any], Any]]) -> None:
        actions = [
            {
                "organizer_id": call.caller.tenant_id,
                "by_key_id": call.caller.id if call.caller.principal == "api_key" else None,
                "by_grant_id": call.caller.id if call.caller.principal == "access_token" else None,
                "operation": operation.name,
                "program": call.caller.program,
                **subject_of(operation.name, call.command, answer)._asdict(),
            }
            for call, answer in done
            if call.caller.tenant_id is not None
        ]
        if actions:
            await sql.insert_actions(tx, actions)


async def list_actions(reader: Reader, caller: Caller, command: ListAgentActions) -> Sequence[AgentAction]:
    """List what agents did for an organizer, the newest first."""
    return await sql.list_actions(reader, caller.tenant, command)


async def forget_organizer(tx: Tx, organizer_id: int) -> None:
    """Delete what agents did for an organizer that ends, and what they ask for."""
    await sql.delete_of_organizer(tx, organizer_id)


async def forget_actions(tx: Tx) -> int:
    """Delete a batch of actions that are older than 90 days. Returns the number deleted."""
    return await sql.delete_old_actions(tx, DELETE_BATCH_SIZE)


LIST_AGENT_ACTIONS = Operation("list_agent_actions", None, read(list_actions))
"""An operation of the console alone: an agent does not read what others did."""
