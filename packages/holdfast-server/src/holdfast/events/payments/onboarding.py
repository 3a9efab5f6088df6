"""Onboarding: an organizer gives the payment processor an identity and a bank account.

A key may ask for it, but only the owner of the organizer's address is sent to the processor, in a session of the
console: the person at the processor's page decides where the money goes.
"""

import datetime as dt
from collections.abc import Awaitable
from functools import partial
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from holdfast.events.payments import accounts
from holdfast.events.payments.due import DueTable, LeasedRow
from holdfast.events.problems import PAYMENTS_NOT_CONFIGURED
from holdfast.events.processor.processor import Processor, ProcessorRefusal, ProcessorUnreachable
from holdfast.events.resources import Concluded, Reader, Steps, Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, SERVICE_UNAVAILABLE, refuses

Answer = TypeVar("Answer")

PAYOUTS = "/console/payouts"
RETURN = f"{PAYOUTS}/return"

UNFINISHED_DAYS = 30
"""An account that is not ready is polled for so long after its owner was sent to the processor."""


class CreateOnboardingLink(Command):
    """Asks for a page on which the organizer can be made ready to be paid out."""


class OpenOnboarding(Command):
    """Asks for the processor's page, for the owner who is signed in.

    has_shown_mail    whether the session was opened by a link in a mail
    """

    has_shown_mail: bool


class ConfirmPayoutAccount(Command):
    """Confirms that an account belongs to the owner. It was connected before the address was proved.

    has_shown_mail    whether the session was opened by a link in a mail
    """

    stripe_account_id: str
    has_shown_mail: bool


class RefreshPayouts(Command):
    """Asks the processor whether the account of the organizer is ready."""


class Onboarding(Struct):
    """The account of an organizer at the payment processor."""

    stripe_account_id: str
    onboarding_complete: Annotated[bool, Meta(description="Whether paid events can be paid for.")]
    onboarding_url: Annotated[
        str,
        Meta(
            description="A page of the console. A human must open it in a browser, and sign in by a link that is sent "
            "to the organizer's address. Then it leads to the payment processor."
        ),
    ]


@refuses(FORBIDDEN, PAYMENTS_NOT_CONFIGURED)
async def create_link(steps: Steps, caller: Caller, command: CreateOnboardingLink) -> Concluded[Onboarding]:
    """Make a link at which a human must sign in, and give the payment processor an identity and a bank account.

    Nobody can pay for paid events before `onboarding_complete`.
    """
    if caller.tenant_id is None:
        raise FORBIDDEN("An admin key has no payouts of its own.", hint="Use a key of the organizer.")
    organizer_id = caller.tenant_id
    processor = steps.resources.require_processor()
    owner = await steps.read(partial(accounts.find_owner, organizer_id=organizer_id))
    account_id = owner.account_id or await _add(steps, processor, owner)
    is_ready = await _answer_of(processor.is_ready(account_id))

    async def store(tx: Tx) -> Onboarding:
        await accounts.store_readiness(tx, account_id, is_ready)
        is_complete = is_ready and await _is_confirmed(tx, account_id)
        # The page tells a visitor who is signed in as another organizer that the link is for this one.
        page = f"{steps.resources.settings.base_url}{PAYOUTS}?organizer={owner.slug}"
        return Onboarding(account_id, is_complete, page)

    return await steps.conclude(store)


@refuses(FORBIDDEN, PAYMENTS_NOT_CONFIGURED)
async def open_processor(steps: Steps, caller: Caller, command: OpenOnboarding) -> Concluded[str]:
    """Make the link to the processor's page, for the owner of the address. It works once, for some minutes.

    An account that is not confirmed may have another person's bank account: a new one replaces it.
    """
    processor = steps.resources.require_processor()
    owner = await steps.read(partial(accounts.find_owner, organizer_id=caller.tenant))
    _require_owner(owner, has_shown_mail=command.has_shown_mail)
    if owner.account_id is None:
        account_id = await _add(steps, processor, owner)
    elif owner.is_confirmed:
        account_id = owner.account_id
    else:
        new_id = await _answer_of(processor.create_account(owner.replacement))
        replace = partial(accounts.replace_account, organizer_id=owner.id, old=owner.account_id, new=new_id)
        account_id = await steps.transact(replace)
    base_url = steps.resources.settings.base_url
    url = await _answer_of(
        processor.onboarding_url(account_id, again_url=base_url + PAYOUTS, done_url=base_url + RETURN)
    )

    async def store(tx: Tx) -> str:
        await accounts.store_link(tx, account_id)
        return url

    return await steps.conclude(store)


@refuses(FORBIDDEN, NOT_FOUND, PAYMENTS_NOT_CONFIGURED)
async def confirm(steps: Steps, caller: Caller, command: ConfirmPayoutAccount) -> Concluded[None]:
    """Let money flow to an account that the owner confirms."""
    processor = steps.resources.require_processor()
    owner = await steps.read(partial(accounts.find_owner, organizer_id=caller.tenant))
    _require_owner(owner, has_shown_mail=command.has_shown_mail)
    account_id = command.stripe_account_id
    if owner.account_id != account_id:
        raise NOT_FOUND("This account is not connected any more.", hint="Open the page of payouts again.")
    is_ready = await _answer_of(processor.is_ready(account_id))

    async def store(tx: Tx) -> None:
        await accounts.confirm_account(tx, owner.id, account_id)
        await accounts.store_readiness(tx, account_id, is_ready)

    return await steps.conclude(store)


@refuses(PAYMENTS_NOT_CONFIGURED)
async def refresh(steps: Steps, caller: Caller, command: RefreshPayouts) -> Concluded[None]:
    """Store whether the account of an organizer is ready, when its owner returns from the processor."""
    processor = steps.resources.require_processor()
    owner = await steps.read(partial(accounts.find_owner, organizer_id=caller.tenant))
    account_id = owner.account_id
    is_ready = await _answer_of(processor.is_ready(account_id)) if account_id else False

    async def store(tx: Tx) -> None:
        if account_id:
            await accounts.store_readiness(tx, account_id, is_ready)

    return await steps.conclude(store)


async def handle_row(steps: Steps, row: LeasedRow) -> dt.datetime | None:
    """Store whether the account of an organizer is ready. Returns the time of the next poll."""
    account_id = await steps.read(
        lambda reader: reader.value(
            "select account_id from payout_accounts where organizer_id = %(id)s", {"id": row.key}
        )
    )
    if account_id is None:  # it was ended meanwhile
        return None
    is_ready = await steps.resources.require_processor().is_ready(account_id)
    return await steps.transact(partial(_store, account_id=account_id, is_ready=is_ready))


DUE_TABLE = DueTable("payout_accounts", "organizer_id", handle_row, at_once=2, name="payout accounts")


async def _store(tx: Tx, account_id: str, is_ready: bool) -> dt.datetime | None:
    """Store whether an account is ready. Returns the time of the next poll.

    An account that is not ready is polled less often the longer that lasts, from once a minute to once a day. A ready
    account may stop being ready: the processor's messages say so, and without messages it is polled once a day.
    """
    await accounts.store_readiness(tx, account_id, is_ready)
    return await tx.value(
        """
        select case when %(is_ready)s then now() + case when %(has_messages)s then null else interval '1 day' end
                    when linked_at > now() - %(days)s * interval '1 day'
                    then now() + least(greatest((now() - linked_at) / 4, interval '1 minute'), interval '1 day') end
          from payout_accounts where account_id = %(account_id)s
        """,
        {
            "account_id": account_id,
            "is_ready": is_ready,
            "has_messages": bool(tx.resources.settings.stripe_webhook_secrets),
            "days": UNFINISHED_DAYS,
        },
    )


def _require_owner(owner: accounts.PayoutOwner, *, has_shown_mail: bool) -> None:
    """Raises `forbidden` for a person who may not decide where the money goes, such as one who has a password only."""
    if not (owner.is_proved and has_shown_mail):
        raise FORBIDDEN(
            "Only the owner of the organizer's address may say where its money goes.",
            hint="Sign in by a link that is sent to the address.",
        )


async def _add(steps: Steps, processor: Processor, owner: accounts.PayoutOwner) -> str:
    """Create the account of an organizer."""
    account_id = await _answer_of(processor.create_account(owner.new_account))
    return await steps.transact(partial(accounts.add_account, organizer_id=owner.id, account_id=account_id))


async def _is_confirmed(reader: Reader, account_id: str) -> bool:
    return bool(
        await reader.value("select is_confirmed from payout_accounts where account_id = %(id)s", {"id": account_id})
    )


async def _answer_of(call: Awaitable[Answer]) -> Answer:
    """The answer of the processor. Raises `service_unavailable` if it does not answer, or refuses."""
    try:
        return await call
    except ProcessorUnreachable as error:
        raise SERVICE_UNAVAILABLE("The payment processor cannot be reached right now.", retry_after=30) from error
    except ProcessorRefusal as error:
        raise SERVICE_UNAVAILABLE(f"The payment processor refuses the account: {error}", retry_after=300) from error
