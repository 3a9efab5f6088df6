"""Checks in people whom the organizer has chosen in a list, without a code."""

import time
import uuid
from typing import LiteralString

from holdfast.events.check_in import sql
from holdfast.events.check_in.model import Device
from holdfast.events.check_in.operations import find_event
from holdfast.events.registrations.several import SeveralCommand, SeveralResult, SkipReason
from holdfast.events.resources import Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.run_modes import single


class CheckInSeveral(SeveralCommand):
    """Asks to check people in. `device`: the name that others see at the entry."""

    device: Device


FIND: LiteralString = """
    select chosen.public_id, person.id, coalesce(registration.status::text, 'gone'), entry.number is not null
      from unnest(%(user_ids)s::text[]) with ordinality as chosen (public_id, turn)
      left join lateral (select id from users where public_id = chosen.public_id limit 1) as person on true
      left join lateral (select status from registrations
                          where event_id = %(event_id)s and user_id = person.id limit 1) as registration on true
      left join lateral (select number from check_in_scans
                          where event_id = %(event_id)s and user_id = person.id and is_entry limit 1) as entry on true
     order by turn
"""


@refuses(NOT_FOUND, FORBIDDEN)
async def check_in(tx: Tx, caller: Caller, command: CheckInSeveral) -> SeveralResult:
    """Store the entry of each person who has a seat and is not in yet."""
    # Locked first: an event that is handed over or cancelled at the same time is seen as it is then.
    await sql.lock_event(tx, caller, command.event_id)
    event = await find_event(tx, caller, command.event_id)
    params = {"event_id": event.id, "user_ids": list(dict.fromkeys(command.user_ids))}
    now = time.time_ns() // 1_000_000
    result, scans = SeveralResult([], {}), list[sql.NewScan]()
    rows: list[tuple[str, int, SkipReason, bool]] = await tx.tuples(FIND, params)
    for public_id, user_id, status, has_entered in rows:
        if status == "registered" and not has_entered and not event.cancelled_at:
            result.done.append(public_id)
            scans.append(sql.NewScan(len(scans), str(uuid.uuid4()), user_id, now))
        elif status == "registered":
            result.skipped[public_id] = "entered" if has_entered else "event_cancelled"
        else:
            result.skipped[public_id] = status
    if scans:
        await sql.insert_scans(tx, event.id, command.device, scans)
    return result


CHECK_IN_SEVERAL = Operation("check_in_people", None, single(check_in))
OPERATIONS = (CHECK_IN_SEVERAL,)
"""It has no route and no tool: the console calls it."""
