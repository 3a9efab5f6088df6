"""What agents did to pools and variants. It is stored by their calls, read by merchants, and deleted after 90 days.

What they did to stock is in the ledger.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from holdfast.inventory.resources import Reader, Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, Id
from holdfast.kit.operations.operation import Call, Operation, read

STORED_OPERATIONS = frozenset(
    {
        "create_pool",
        "update_pool",
        "pause_pool",
        "resume_pool",
        "archive_pool",
        "restore_pool",
        "link_variants",
        "update_member",
        "unlink_variants",
        "import_csv",
        "resync",
    }
)
"""The operations whose calls by agents are stored."""

MAY_CHANGE_NOTHING = STORED_OPERATIONS - {"create_pool", "import_csv", "resync"}
"""The operations that succeed without a change if what they ask for is so already. Such a call is not stored."""


class ListAgentActions(Command):
    """Get what agents did to the pools of the shop, the newest first."""

    before: Annotated[Id | None, Meta(description="Only those older than this one.")] = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 40


class AgentAction(Struct, frozen=True):
    """One change that an agent made.

    agent_name     what its program called itself; None: nothing
    number         how many variants it was about, or rows of a spreadsheet
    pool_name      None: it was about no pool, or about one that is not there any more
    pool_status    the status of the pool now
    """

    id: int
    agent_name: str | None
    operation: str
    pool_id: int | None
    number: int | None
    done_at: dt.datetime
    pool_name: str | None
    pool_status: str | None


class AgentActionLog:
    """Stores what agents did to pools, as `AgentLog`."""

    def covers(self, operation: Operation) -> bool:
        return operation.name in STORED_OPERATIONS

    async def version(self, tx: Tx, operation: Operation, command: Any) -> str | None:
        if operation.name not in MAY_CHANGE_NOTHING:
            return None
        return await tx.value(
            """
            select md5(concat_ws(' ', name, unit, buffer, low_stock_at, allow_negative, policy, status,
                                 (select string_agg(variant_gid || ' ' || units_per_sale, ' ' order by variant_gid)
                                    from members where members.shop_id = pools.shop_id and pool_id = pools.id)))
              from pools where shop_id = (select current_shop()) and id = %(pool_id)s
            """,
            {"pool_id": command.pool_id},
        )

    async def store(self, tx: Tx, operation: Operation, answered_calls: Sequence[tuple[Call[Any], Any]]) -> None:
        actions = [
            {
                "shop_id": call.caller.tenant,
                "key_id": call.caller.id,
                "agent_name": call.caller.program[:300] or None,
                "operation": operation.name,
                "pool_id": getattr(call.command, "pool_id", None) or _id_of_new_pool(answer),
                "number": _number(call.command),
            }
            for call, answer in answered_calls
            if not call.command.dry_run
        ]
        if actions:
            await tx.run(
                """
                insert into agent_actions (shop_id, key_id, agent_name, operation, pool_id, number)
                select shop_id, key_id, agent_name, operation, pool_id, number
                  from json_to_recordset(%(actions)s::json)
                       as action (shop_id bigint, key_id bigint, agent_name text, operation text, pool_id bigint,
                                  number bigint)
                """,
                {"actions": msgspec.json.encode(actions).decode()},
            )


def _id_of_new_pool(answer: Any) -> int | None:
    """The id of the pool that a call has made; None: it has made none."""
    pool = getattr(answer, "pool", None)
    return pool.id if pool else None


def _number(command: Any) -> int | None:
    """How many variants a command is about, or rows of a spreadsheet; None: it has neither."""
    if text := getattr(command, "text", None):
        return len(text.strip().splitlines()) - 1
    for field in ("members", "variant_gids"):
        if (variants := getattr(command, field, None)) is not None:
            return len(variants)
    return None


async def list_actions(reader: Reader, caller: Caller, command: ListAgentActions) -> list[AgentAction]:
    """What agents did to the pools of the shop, the newest first."""
    return await reader.rows(
        AgentAction,
        """
        select action.id, agent_name, operation, pool_id, number, done_at, pool.name as pool_name,
               pool.status as pool_status
          from (select * from agent_actions
                 where shop_id = %(shop_id)s and id < coalesce(%(before)s, 9223372036854775807)
                 order by id desc limit %(limit)s) as action
          left join lateral (select name, status::text from pools
                              where pools.shop_id = %(shop_id)s and pools.id = action.pool_id limit 1) as pool on true
         order by action.id desc
        """,
        {"shop_id": caller.tenant, "before": command.before, "limit": command.limit},
    )


LIST_AGENT_ACTIONS = Operation("list_shop_agent_actions", None, read(list_actions))
"""An operation of the console alone: an agent does not read what others did."""
