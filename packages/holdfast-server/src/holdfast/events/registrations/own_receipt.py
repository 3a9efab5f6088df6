"""The receipt of a person's own registration, behind a signed link: it is made again from the stored row."""

from typing import LiteralString

import msgspec

from holdfast.events.registrations.own_registration import OwnRegistrationCommand
from holdfast.events.registrations.stamps import LOGGED_AT, LOGGED_NONCE
from holdfast.events.resources import Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, refuses
from holdfast_verify.formats.log_name import LogName
from holdfast_verify.formats.receipts import ReceiptFile, later_receipt, receipt_of


class GetOwnReceipt(OwnRegistrationCommand):
    """Asks for the receipt of a registration."""


FIND: LiteralString = f"""
    select {LOGGED_AT} as received_at, {LOGGED_NONCE} as nonce, logged_as, log_number, status
      from registrations
     where event_id = %(event_id)s and user_id = (select id from users where public_id = %(user_id)s limit 1)
       and arrival = %(arrival)s
"""


@refuses(NOT_FOUND)
async def get(tx: Tx, caller: Caller, command: GetOwnReceipt) -> ReceiptFile:
    """The receipt of a registration, not signed yet. There is none if no log has it, or the person was erased."""
    for received_at, nonce, logged_as, number, status in await tx.tuples(FIND, msgspec.structs.asdict(command)):
        if nonce is None:
            break
        await tx.confirm()  # only what is as durable as configured is promised
        name, base_url = LogName("events", command.event_id), tx.resources.settings.base_url
        person = logged_as or command.user_id
        receipt = receipt_of(name, base_url, received_at, person, nonce)
        poll_path = f"/api/registrations/{command.event_id}/{person}"
        return later_receipt(receipt, name.subject, base_url, poll_path, number, status)
    raise NOT_FOUND("There is no receipt for this registration.")
