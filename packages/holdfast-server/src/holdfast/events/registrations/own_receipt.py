"""The receipt of a person's own registration, made again from the stored row."""

import datetime as dt
from typing import LiteralString, NamedTuple

import msgspec

from holdfast.events.registrations.links import OwnRegistrationCommand
from holdfast.events.resources import Tx
from holdfast.events.seats.intake import LOGGED_AT, LOGGED_NONCE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, refuses
from holdfast_verify.formats.receipts import ReceiptFile, later_receipt, receipt_of
from holdfast_verify.formats.signed_note import LogName


class GetOwnReceipt(OwnRegistrationCommand):
    """Asks for the receipt of a registration."""


RECEIPT_FACTS: LiteralString = f"""
    select {LOGGED_AT} as received_at, {LOGGED_NONCE} as nonce, logged_as, log_number, status
      from registrations
     where event_id = %(event_id)s and user_id = (select id from users where public_id = %(public_id)s limit 1)
       and arrival = %(arrival)s
"""


class _ReceiptFacts(NamedTuple):
    """What a receipt says, as it is stored. `nonce`: None if no log has the registration."""

    received_at: dt.datetime
    nonce: str | None
    logged_as: str | None
    log_number: int | None
    status: str


@refuses(NOT_FOUND)
async def get_receipt(tx: Tx, caller: Caller, command: GetOwnReceipt) -> ReceiptFile:
    """The receipt of a registration, not signed yet. There is none if no log has it, or the person was erased."""
    facts = await tx.row(_ReceiptFacts, RECEIPT_FACTS, msgspec.structs.asdict(command))
    if facts is None or facts.nonce is None:
        raise NOT_FOUND("There is no receipt for this registration.")
    await tx.wait_for_earlier_commits()  # only what is as durable as configured is promised
    name, base_url = LogName("events", command.event_id), tx.resources.settings.base_url
    person = facts.logged_as or command.public_id
    receipt = receipt_of(name, base_url, facts.received_at, person, facts.nonce)
    poll_path = f"/api/registrations/{command.event_id}/{person}"
    return later_receipt(receipt, name.subject, base_url, poll_path, facts.log_number, facts.status)
