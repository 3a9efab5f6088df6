"""Sends the mail about a registration once more, as its organizer asks. It is sent at most once an hour."""

from typing import Literal, LiteralString

from msgspec import Struct

from holdfast.events.events import operations as events
from holdfast.events.paths import EventId
from holdfast.events.registrations import own_registration
from holdfast.events.registrations.own_registration import SendDetails
from holdfast.events.resources import Tx
from holdfast.events.users.model import PublicId
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.run_modes import single

ResendStatus = Literal["mail_sent", "mail_too_soon", "mail_unwanted"]
"""mail_too_soon: it was sent within the last hour; mail_unwanted: no mails go to the person"""


class ResendMail(Command):
    """Asks to send the mail about a registration again."""

    event_id: EventId
    user_id: PublicId


class ResendConditions(Struct, frozen=True):
    """What decides whether the mail is sent."""

    arrival: int
    is_wanted: bool
    is_too_soon: bool


_CONDITIONS: LiteralString = """
    select arrival, notify and status in ('registered', 'waitlisted', 'in_draw') as is_wanted,
           coalesce(details_at >= now() - interval '1 hour', false) as is_too_soon
      from registrations
     where event_id = %(event_id)s and user_id = (select id from users where public_id = %(user_id)s)
       for no key update
"""


@refuses(NOT_FOUND, FORBIDDEN)
async def resend(tx: Tx, caller: Caller, command: ResendMail) -> ResendStatus:
    """Send the mail about a registration again, unless it was sent within the last hour."""
    await events.find(tx, caller, command.event_id)
    values = {"event_id": command.event_id, "user_id": command.user_id}
    conditions = await tx.row(ResendConditions, _CONDITIONS, values)
    if conditions is None:
        raise NOT_FOUND("There is no such registration any more.", hint="See the list of registrations.")
    if not conditions.is_wanted:
        return "mail_unwanted"
    if conditions.is_too_soon:
        return "mail_too_soon"
    details = SendDetails(event_id=command.event_id, user_id=command.user_id, arrival=conditions.arrival)
    await own_registration.send_again(tx, caller, details)
    return "mail_sent"


RESEND_MAIL = Operation("send_mail_of_registration", None, single(resend))
OPERATIONS = (RESEND_MAIL,)
"""It has no route and no tool of its own."""
