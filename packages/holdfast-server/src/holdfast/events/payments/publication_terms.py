"""What decides whether people can register for an event once it is published: its date, its price, and the payouts."""

import datetime as dt
from typing import Literal

from msgspec import Struct

from holdfast.events.events.model import CreateEvent, EventRow
from holdfast.events.payments import payout_accounts
from holdfast.events.payments.payout_model import GetPayouts, Payouts
from holdfast.events.processor.currencies import is_payable
from holdfast.events.resources import Reader
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.operations.operation import Operation, read

Obstacle = Literal["past", "price", "payouts"]
"""Why people cannot register on the page of an event: it has begun, its price cannot be paid by card, or nothing can be
paid to the organizer."""


class ReadPublicationTerms(Command):
    """Asks what decides whether people can register for a published event of the organizer."""


class PublicationTerms(Struct):
    """What decides whether people can register for a published event.

    now    the time of the database
    """

    payouts: Payouts
    now: dt.datetime

    def obstacles(self, event: EventRow | CreateEvent) -> list[Obstacle]:
        """What keeps people from registering on the page of an event, once it is published."""
        price = event.price if isinstance(event, CreateEvent) else event.current_price or 0
        obstacles: list[Obstacle] = []
        if event.datetime <= self.now:
            obstacles.append("past")
        if event.pricing_mode != "free" and not is_payable(price, event.currency):
            obstacles.append("price")
        if event.pricing_mode != "free" and self.payouts.status != "ready":
            obstacles.append("payouts")
        return obstacles


async def read_terms(reader: Reader, caller: Caller, command: ReadPublicationTerms) -> PublicationTerms:
    """Read what decides whether people can register for a published event of the organizer."""
    payouts = await payout_accounts.get(reader, caller, GetPayouts())
    return PublicationTerms(payouts, await reader.value("select now()"))


READ_TERMS = Operation("get_publication_terms", None, read(read_terms))
OPERATIONS = (READ_TERMS,)
"""An operation of the console alone: it has no route of the API and no tool."""
