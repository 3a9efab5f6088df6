"""The operations on prices."""

from holdfast.events.pricing import sql
from holdfast.events.pricing.model import ListPriceHistory, PriceChange
from holdfast.events.resources import Reader
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses


@refuses(NOT_FOUND, FORBIDDEN)
async def history(reader: Reader, caller: Caller, command: ListPriceHistory) -> list[PriceChange]:
    """List every change of an event's price, newest first."""
    organizer_id = await sql.organizer_of(reader, command.event_id)
    if organizer_id is None:
        raise NOT_FOUND(f"No event has the id {command.event_id}.")
    if not caller.may_access(organizer_id):
        raise FORBIDDEN(f"Event {command.event_id} belongs to another organizer.")
    return await sql.list_price_changes(reader, command.event_id)
