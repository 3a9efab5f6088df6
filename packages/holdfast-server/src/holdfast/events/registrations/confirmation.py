"""Confirming an entry of a draw: the person shows that its address is theirs, by a link that was only mailed there.

The account keeps the time. So the person confirms once, for all draws.
"""

import msgspec

from holdfast.events.registrations.intake import ADVISORY_LOCK_ID
from holdfast.events.registrations.own_registration import OwnRegistrationCommand, find_own_registrations
from holdfast.events.resources import Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, refuses


class ConfirmOwnRegistration(OwnRegistrationCommand):
    """Says that the address of a registration is the person's own."""


@refuses(NOT_FOUND)
async def confirm(tx: Tx, caller: Caller, command: ConfirmOwnRegistration) -> None:
    """Store that the address of a registration is the person's own."""
    # First: a transaction that waits while it has the lock of the intake delays all settlements.
    await tx.run("select from users where public_id = %(user_id)s for no key update", {"user_id": command.user_id})
    # All who confirm in time, by the clock of the database, are stored before the list of a draw is read.
    await tx.run("select pg_advisory_xact_lock_shared(%(lock)s)", {"lock": ADVISORY_LOCK_ID})
    await tx.run(
        """
        update users set proved_at = clock_timestamp()
         where public_id = %(user_id)s and proved_at is null and role = 'user' and erased_at is null
           and exists (select from registrations
                        where event_id = %(event_id)s and user_id = users.id and arrival = %(arrival)s)
        """,
        msgspec.structs.asdict(command),
    )
    if (await find_own_registrations(tx, [command]))[0] is None:
        raise NOT_FOUND("There is no such registration any more.")
