"""Erasing a person, with everything that another person made with the address."""

from holdfast.events.oauth.operations import unlink_all
from holdfast.events.payments.ownership import end_stranger
from holdfast.events.people import operations
from holdfast.events.people.model import AccountSelector, Erasure
from holdfast.events.people.proof import EraseOwnData
from holdfast.events.resources import Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses


async def erase(tx: Tx, selector: AccountSelector) -> Erasure:
    """Erase a person's data, as `people.operations.erase` does.

    An organizer that was registered with the address, and that the person has not confirmed, ends as if the person had
    rejected it: afterwards it could not be rejected any more.
    """
    return await operations.erase(tx, selector, _end)


@refuses(NOT_FOUND, FORBIDDEN)
async def erase_own(tx: Tx, caller: Caller, command: EraseOwnData) -> Erasure:
    """Erase the data of the person to whom a link belongs."""
    return await erase(tx, command.selector(command.holder))


async def _end(tx: Tx, organizer_id: int) -> None:
    await unlink_all(tx, organizer_id)
    await end_stranger(tx, organizer_id)
