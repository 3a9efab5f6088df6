"""The accounts of organizers at the payment processor: how one is opened, and when money flows to it.

A key may ask for an account, but only the owner of the organizer's address is sent to the processor, in a session of
the console: the person at the processor's page decides where the money goes. Money flows to an account only if it is
confirmed: only that owner could give it a bank account, or has confirmed it.
"""

import datetime as dt
from collections.abc import Awaitable
from functools import partial
from typing import Annotated, Literal, LiteralString, TypeVar

from msgspec import Meta, Struct

from holdfast.events.payments.due import PaymentTable
from holdfast.events.problems import PAYMENTS_NOT_CONFIGURED
from holdfast.events.processor.processor import NewAccount, Processor, ProcessorRefusal, ProcessorUnreachable
from holdfast.events.resources import Conclusion, Reader, Steps, Tx
from holdfast.events.seats.seats import PAYMENTS_CHANNEL
from holdfast.kit.background.leases import LeasedRow, RowTable
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, SERVICE_UNAVAILABLE, refuses


class PayoutOwner(Struct):
    """An organizer who is paid out, and its account.

    is_proved       whether the address is proved
    account_id      None: there is no account
    is_confirmed    whether money may flow to the account
    ended_count     the number of ended accounts of the organizer
    """

    id: int
    email: str
    name: str
    slug: str
    is_proved: bool
    account_id: str | None
    is_confirmed: bool
    ended_count: int

    @property
    def new_account(self) -> NewAccount:
        """The request for the organizer's first account, or for the next after its ended accounts."""
        return NewAccount(self.id, self.email, self.name, self.ended_count)

    @property
    def replacement(self) -> NewAccount:
        """The request for an account that replaces the present one."""
        return NewAccount(self.id, self.email, self.name, self.ended_count + 1)


async def find_owner(reader: Reader, organizer_id: int) -> PayoutOwner:
    owner = await reader.row(
        PayoutOwner,
        """
        select id, email, coalesce(name, slug, email) as name, slug, proved_at is not null as is_proved, account_id,
               coalesce(is_confirmed, false) as is_confirmed,
               (select count(*) from ended_payout_accounts where organizer_id = users.id) as ended_count
          from users left join payout_accounts on payout_accounts.organizer_id = users.id
         where users.id = %(id)s and email is not null
        """,
        {"id": organizer_id},
    )
    if owner is None:
        raise SERVICE_UNAVAILABLE("The organizer was removed at the same time.", retry_after=1)
    return owner


async def add_account(tx: Tx, organizer_id: int, account_id: str, *, refund_days: int = 0) -> str:
    """Store the account of an organizer, unless another was stored before. Returns the stored account's id."""
    return await tx.value(
        """
        insert into payout_accounts (organizer_id, account_id, is_confirmed, refund_days)
        values (%(organizer_id)s, %(account_id)s, true, %(refund_days)s)
            on conflict (organizer_id) do update set account_id = payout_accounts.account_id
        returning account_id
        """,
        {"organizer_id": organizer_id, "account_id": account_id, "refund_days": refund_days},
    )


async def replace_account(tx: Tx, organizer_id: int, old: str, new: str) -> str:
    """Replace an account by another, with the same rule for cancellations. Returns the stored account's id."""
    refund_days = await tx.value("select refund_days from payout_accounts where account_id = %(old)s", {"old": old})
    await _end_accounts(tx, "account_id = %(old)s", {"old": old})
    return await add_account(tx, organizer_id, new, refund_days=refund_days or 0)


async def end_account(tx: Tx, organizer_id: int) -> None:
    """End the account of an organizer: no more money flows to it, and its open payment pages are closed."""
    await _end_accounts(tx, "organizer_id = %(id)s", {"id": organizer_id})


async def store_readiness(tx: Tx, account_id: str, is_ready: bool) -> None:
    """Store whether money can be paid out to an account. It counts only for a confirmed account."""
    await tx.run(
        """
        update users set payouts_ready = %(is_ready)s and is_confirmed
          from payout_accounts
         where users.id = organizer_id and account_id = %(account_id)s
           and payouts_ready <> (%(is_ready)s and is_confirmed)
        """,
        {"account_id": account_id, "is_ready": is_ready},
    )


async def store_link(tx: Tx, account_id: str) -> None:
    """Store that the owner is sent to the processor now. From then on the processor is polled for the readiness."""
    await tx.run(
        """
        update payout_accounts set linked_at = now(), due_at = now() + interval '1 minute'
         where account_id = %(account_id)s and is_confirmed
        """,
        {"account_id": account_id},
    )


async def confirm_account(tx: Tx, organizer_id: int, account_id: str) -> None:
    """Store that the owner has confirmed an account."""
    await tx.run(
        """
        update payout_accounts set is_confirmed = true, linked_at = now(), due_at = now()
         where organizer_id = %(organizer_id)s and account_id = %(account_id)s and not is_confirmed
        """,
        {"organizer_id": organizer_id, "account_id": account_id},
    )


async def _end_accounts(tx: Tx, condition: LiteralString, arguments: dict[str, object]) -> None:
    await tx.run(
        f"""
        with ended as (delete from payout_accounts where {condition} returning organizer_id, account_id),
        noted as (
            insert into ended_payout_accounts (organizer_id, account_id)
            select organizer_id, account_id from ended on conflict do nothing),
        unready as (
            update users set payouts_ready = false from ended where users.id = organizer_id and payouts_ready)
        update payments set ends_at = least(ends_at, now()), due_at = now()
          from ended
         where payments.account_id = ended.account_id and payments.state in ('opening', 'open')
        """,
        arguments,
    )
    await tx.notify(PAYMENTS_CHANNEL)


Answer = TypeVar("Answer")

PAYOUTS = "/console/payouts"
RETURN = f"{PAYOUTS}/return"

UNFINISHED_DAYS = 30
"""How long an account that is not ready is polled after its owner was sent to the processor."""


class CreateOnboardingLink(Command):
    """Asks for a page on which the organizer can be made ready to be paid out."""


class OpenOnboarding(Command):
    """Asks for the processor's page, for the owner who is signed in.

    is_opened_by_mail    whether the session was opened by a link in a mail
    event_id             the event from whose page the owner comes, and to which the processor leads back
    """

    is_opened_by_mail: bool
    event_id: int | None = None


class ConfirmPayoutAccount(Command):
    """Confirms that an account belongs to the owner. It was connected before the address was proved.

    is_opened_by_mail    whether the session was opened by a link in a mail
    """

    stripe_account_id: str
    is_opened_by_mail: bool


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
async def create_link(steps: Steps, caller: Caller, command: CreateOnboardingLink) -> Conclusion[Onboarding]:
    """Make a link for a human, who gives the payment processor an identity and a bank account.

    Events can be paid for once `onboarding_complete` is true.
    """
    if caller.tenant_id is None:
        raise FORBIDDEN("An admin key has no payouts of its own.", hint="Use a key of the organizer.")
    organizer_id = caller.tenant_id
    processor = steps.resources.require_processor()
    owner = await steps.read(partial(find_owner, organizer_id=organizer_id))
    account_id = owner.account_id or await _add(steps, processor, owner)
    is_ready = await _answer_of(processor.is_ready(account_id))

    async def store(tx: Tx) -> Onboarding:
        await store_readiness(tx, account_id, is_ready)
        is_complete = is_ready and await _is_confirmed(tx, account_id)
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
    owner = await steps.read(partial(find_owner, organizer_id=caller.tenant))
    _require_owner(owner, is_opened_by_mail=command.is_opened_by_mail)
    if owner.account_id is None:
        account_id = await _add(steps, processor, owner)
    elif owner.is_confirmed:
        account_id = owner.account_id
    else:
        new_id = await _answer_of(processor.create_account(owner.replacement))
        replace = partial(replace_account, organizer_id=owner.id, old=owner.account_id, new=new_id)
        account_id = await steps.transact(replace)
    base_url = steps.resources.settings.base_url
    query = f"?event={command.event_id}" if command.event_id else ""
    again_url, done_url = (f"{base_url}{path}{query}" for path in (PAYOUTS, RETURN))
    url = await _answer_of(processor.onboarding_url(account_id, again_url=again_url, done_url=done_url))

    async def store(tx: Tx) -> str:
        await store_link(tx, account_id)
        return url

    return await steps.conclude(store)


@refuses(FORBIDDEN, NOT_FOUND, PAYMENTS_NOT_CONFIGURED)
async def confirm(steps: Steps, caller: Caller, command: ConfirmPayoutAccount) -> Conclusion[None]:
    """Let money flow to an account that the owner confirms."""
    processor = steps.resources.require_processor()
    owner = await steps.read(partial(find_owner, organizer_id=caller.tenant))
    _require_owner(owner, is_opened_by_mail=command.is_opened_by_mail)
    account_id = command.stripe_account_id
    if owner.account_id != account_id:
        raise NOT_FOUND("This account is not connected any more.", hint="Open the page of payouts again.")
    is_ready = await _answer_of(processor.is_ready(account_id))

    async def store(tx: Tx) -> None:
        await confirm_account(tx, owner.id, account_id)
        await store_readiness(tx, account_id, is_ready)

    return await steps.conclude(store)


@refuses(PAYMENTS_NOT_CONFIGURED)
async def refresh(steps: Steps, caller: Caller, command: RefreshPayouts) -> Conclusion[None]:
    """Store whether the account of an organizer is ready, when its owner returns from the processor."""
    processor = steps.resources.require_processor()
    owner = await steps.read(partial(find_owner, organizer_id=caller.tenant))
    account_id = owner.account_id
    is_ready = await _answer_of(processor.is_ready(account_id)) if account_id else False

    async def store(tx: Tx) -> None:
        if account_id:
            await store_readiness(tx, account_id, is_ready)

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


DUE_TABLE = PaymentTable("payout accounts", RowTable("payout_accounts", "organizer_id"), handle_row, max_concurrent=2)


async def _store(tx: Tx, account_id: str, is_ready: bool) -> dt.datetime | None:
    """Store whether an account is ready. Returns the time of the next poll.

    An account that is not ready is polled less often the longer that lasts, from once a minute to once a day. A ready
    account may stop being ready: the processor's messages say so, and without messages it is polled once a day.
    """
    await store_readiness(tx, account_id, is_ready)
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
    return await steps.transact(partial(add_account, organizer_id=owner.id, account_id=account_id))


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


class GetPayouts(Command):
    """Asks for the status of the organizer's payouts."""


class SetRefundRule(Command):
    """Asks that cancellations until this many days before an event are refunded in full, and later ones not at all."""

    refund_days: Annotated[int, Meta(ge=0, le=3650)]


PayoutStatus = Literal["unavailable", "none", "unconfirmed", "unfinished", "ready"]


class Payouts(Struct):
    """The payouts of an organizer.

    name, slug     the organizer
    status         `unavailable`: this service takes no payments; `none`: there is no account; `unconfirmed`: there
                   is one, and the owner has not confirmed it; `unfinished`; `ready`
    fee_percent    the share of the platform in each payment
    refund_days    see `SetRefundRule`
    """

    name: str
    slug: str
    status: PayoutStatus
    account_id: str | None
    fee_percent: int
    refund_days: int


class _PayoutRow(Struct):
    """An organizer, with its payout account if it has one."""

    name: str
    slug: str
    account_id: str | None
    refund_days: int
    payouts_ready: bool
    is_confirmed: bool | None


async def get(reader: Reader, caller: Caller, command: GetPayouts) -> Payouts:
    """Read the status of the organizer's payouts."""
    settings = reader.resources.settings
    [row] = await reader.rows(
        _PayoutRow,
        """
        select name, slug, account_id, coalesce(refund_days, 0) as refund_days, payouts_ready, is_confirmed
          from users left join payout_accounts on organizer_id = users.id where users.id = %(id)s
        """,
        {"id": caller.tenant},
    )
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
    changed = await tx.value(
        "update payout_accounts set refund_days = %(days)s where organizer_id = %(id)s returning true",
        {"days": command.refund_days, "id": caller.tenant},
    )
    if not changed:
        raise NOT_FOUND("There is no account for payouts yet.", hint="Connect one first.")
