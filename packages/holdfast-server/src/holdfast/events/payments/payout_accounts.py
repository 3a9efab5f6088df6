"""The accounts of organizers at the payment processor: how one is opened, and when money flows to it.

A key may ask for an account, but only the owner of the organizer's address is sent to the processor, in a session of
the console: the person at the processor's page decides where the money goes. Money flows to an account only if it is
confirmed: only that owner could give it a bank account, or has confirmed it.
"""

import datetime as dt
from collections.abc import Awaitable
from functools import partial
from typing import TypeVar

from holdfast.events.payments import payout_rows
from holdfast.events.payments.due import PaymentTable
from holdfast.events.payments.payout_model import (
    ConfirmPayoutAccount,
    CreateOnboardingLink,
    GetPayouts,
    Onboarding,
    OpenOnboarding,
    Payouts,
    PayoutStatus,
    RefreshPayouts,
    SetRefundRule,
)
from holdfast.events.payments.payout_rows import PayoutOwner
from holdfast.events.problems import PAYMENTS_NOT_CONFIGURED
from holdfast.events.processor.processor import Processor, ProcessorRefusal, ProcessorUnreachable
from holdfast.events.resources import Conclusion, Reader, Steps, Tx
from holdfast.kit.background.leases import LeasedRow, RowTable
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, SERVICE_UNAVAILABLE, refuses

PAYOUTS = "/console/payouts"
RETURN = f"{PAYOUTS}/return"

Answer = TypeVar("Answer")


@refuses(FORBIDDEN, PAYMENTS_NOT_CONFIGURED)
async def create_link(steps: Steps, caller: Caller, command: CreateOnboardingLink) -> Conclusion[Onboarding]:
    """Make a link for a human, who gives the payment processor an identity and a bank account.

    Events can be paid for once `onboarding_complete` is true.
    """
    if caller.tenant_id is None:
        raise FORBIDDEN("An admin key has no payouts of its own.", hint="Use a key of the organizer.")
    organizer_id = caller.tenant_id
    processor = steps.resources.require_processor()
    owner = await steps.read(partial(payout_rows.find_owner, organizer_id=organizer_id))
    account_id = owner.account_id or await _add(steps, processor, owner)
    is_ready = await _answer_of(processor.is_ready(account_id))

    async def store(tx: Tx) -> Onboarding:
        await payout_rows.store_readiness(tx, account_id, is_ready)
        is_complete = is_ready and await payout_rows.is_account_confirmed(tx, account_id)
        # The page tells a visitor who is signed in as another organizer that the link is for this one.
        page = f"{steps.resources.settings.base_url}{PAYOUTS}?organizer={owner.slug}"
        return Onboarding(account_id, is_complete, page)

    return await steps.conclude(store)


@refuses(FORBIDDEN, PAYMENTS_NOT_CONFIGURED)
async def open_processor(steps: Steps, caller: Caller, command: OpenOnboarding) -> Conclusion[str]:
    """Make the link to the processor's page, for the owner of the address. It works once, for some minutes.

    An account that is not confirmed may have another person's bank account: a new one replaces it.
    """
    processor = steps.resources.require_processor()
    owner = await steps.read(partial(payout_rows.find_owner, organizer_id=caller.tenant))
    _require_owner(owner, is_opened_by_mail=command.is_opened_by_mail)
    if owner.account_id is None:
        account_id = await _add(steps, processor, owner)
    elif owner.is_confirmed:
        account_id = owner.account_id
    else:
        new_id = await _answer_of(processor.create_account(owner.replacement))
        replace = partial(payout_rows.replace_account, organizer_id=owner.id, old=owner.account_id, new=new_id)
        account_id = await steps.transact(replace)
    base_url = steps.resources.settings.base_url
    query = f"?event={command.event_id}" if command.event_id else ""
    again_url, done_url = (f"{base_url}{path}{query}" for path in (PAYOUTS, RETURN))
    url = await _answer_of(processor.onboarding_url(account_id, again_url=again_url, done_url=done_url))

    async def store(tx: Tx) -> str:
        await payout_rows.begin_polls(tx, account_id)
        return url

    return await steps.conclude(store)


@refuses(FORBIDDEN, NOT_FOUND, PAYMENTS_NOT_CONFIGURED)
async def confirm(steps: Steps, caller: Caller, command: ConfirmPayoutAccount) -> Conclusion[None]:
    """Let money flow to an account that the owner confirms."""
    processor = steps.resources.require_processor()
    owner = await steps.read(partial(payout_rows.find_owner, organizer_id=caller.tenant))
    _require_owner(owner, is_opened_by_mail=command.is_opened_by_mail)
    account_id = command.stripe_account_id
    if owner.account_id != account_id:
        raise NOT_FOUND("This account is not connected any more.", hint="Open the page of payouts again.")
    is_ready = await _answer_of(processor.is_ready(account_id))

    async def store(tx: Tx) -> None:
        await payout_rows.confirm_account(tx, owner.id, account_id)
        await payout_rows.store_readiness(tx, account_id, is_ready)

    return await steps.conclude(store)


@refuses(PAYMENTS_NOT_CONFIGURED)
async def refresh(steps: Steps, caller: Caller, command: RefreshPayouts) -> Conclusion[None]:
    """Store whether the account of an organizer is ready, when its owner returns from the processor."""
    processor = steps.resources.require_processor()
    owner = await steps.read(partial(payout_rows.find_owner, organizer_id=caller.tenant))
    account_id = owner.account_id
    is_ready = await _answer_of(processor.is_ready(account_id)) if account_id else False

    async def store(tx: Tx) -> None:
        if account_id:
            await payout_rows.store_readiness(tx, account_id, is_ready)

    return await steps.conclude(store)


async def handle_row(steps: Steps, row: LeasedRow) -> dt.datetime | None:
    """Store whether the account of an organizer is ready. Returns the time of the next poll."""
    account_id = await steps.read(partial(payout_rows.find_account_id, organizer_id=row.key))
    if account_id is None:  # it was ended meanwhile
        return None
    is_ready = await steps.resources.require_processor().is_ready(account_id)
    return await steps.transact(partial(payout_rows.store_poll_result, account_id=account_id, is_ready=is_ready))


DUE_TABLE = PaymentTable("payout accounts", RowTable("payout_accounts", "organizer_id"), handle_row, max_concurrent=2)


def _require_owner(owner: PayoutOwner, *, is_opened_by_mail: bool) -> None:
    """Raises `forbidden` for a person who may not decide where the money goes, such as one who has a password only."""
    if not (owner.is_proved and is_opened_by_mail):
        raise FORBIDDEN(
            "Only the owner of the organizer's address may say where its money goes.",
            hint="Sign in by a link that is sent to the address.",
        )


async def _add(steps: Steps, processor: Processor, owner: PayoutOwner) -> str:
    """Create the account of an organizer."""
    account_id = await _answer_of(processor.create_account(owner.new_account))
    return await steps.transact(partial(payout_rows.add_account, organizer_id=owner.id, account_id=account_id))


async def _answer_of(call: Awaitable[Answer]) -> Answer:
    """The answer of the processor. Raises `service_unavailable` if it does not answer, or refuses."""
    try:
        return await call
    except ProcessorUnreachable as error:
        raise SERVICE_UNAVAILABLE("The payment processor cannot be reached right now.", retry_after=30) from error
    except ProcessorRefusal as error:
        raise SERVICE_UNAVAILABLE(f"The payment processor refuses the account: {error}", retry_after=300) from error


async def get(reader: Reader, caller: Caller, command: GetPayouts) -> Payouts:
    """Read the status of the organizer's payouts."""
    settings = reader.resources.settings
    row = await payout_rows.find_payout_row(reader, caller.tenant)
    status: PayoutStatus = "unfinished"
    if not settings.takes_payments:
        status = "unavailable"
    elif not row.account_id:
        status = "none"
    elif not row.is_confirmed:
        status = "unconfirmed"
    elif row.payouts_ready:
        status = "ready"
    return Payouts(row.name, row.slug, status, row.account_id, settings.platform_fee_percent, row.refund_days)


@refuses(NOT_FOUND, PAYMENTS_NOT_CONFIGURED)
async def set_rule(tx: Tx, caller: Caller, command: SetRefundRule) -> None:
    """Change the rule for cancellations. It applies to seats held from now on."""
    tx.resources.require_processor()
    if not await payout_rows.store_refund_days(tx, caller.tenant, command.refund_days):
        raise NOT_FOUND("There is no account for payouts yet.", hint="Connect one first.")
