"""The rows of payout accounts: whose an account is, whether money may flow to it, and when the processor is polled."""

import datetime as dt
from typing import LiteralString

from msgspec import Struct

from holdfast.events.processor.processor import NewAccount
from holdfast.events.resources import Reader, Tx
from holdfast.events.seats.held_seats import PAYMENTS_CHANNEL
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE

MAX_POLL_DAYS = 30
"""How long an account that is not ready is polled after its owner was sent to the processor."""


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


async def begin_polls(tx: Tx, account_id: str) -> None:
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


async def store_poll_result(tx: Tx, account_id: str, is_ready: bool) -> dt.datetime | None:
    """Store whether an account is ready. Returns the time of the next poll; None: there is none.

    An account that is not ready is polled less often the longer that lasts, from once a minute to once a day. A ready
    account may stop being ready: partner webhooks say so, and without them it is polled once a day.
    """
    await store_readiness(tx, account_id, is_ready)
    return await tx.value(
        """
        select case when %(is_ready)s
                    then now() + case when %(has_partner_webhooks)s then null else interval '1 day' end
                    when linked_at > now() - %(days)s * interval '1 day'
                    then now() + least(greatest((now() - linked_at) / 4, interval '1 minute'), interval '1 day') end
          from payout_accounts where account_id = %(account_id)s
        """,
        {
            "account_id": account_id,
            "is_ready": is_ready,
            "has_partner_webhooks": bool(tx.resources.settings.stripe_webhook_secrets),
            "days": MAX_POLL_DAYS,
        },
    )


async def is_account_confirmed(reader: Reader, account_id: str) -> bool:
    """Whether money may flow to an account. False: it is not confirmed, or there is none with this id any more."""
    return bool(
        await reader.value("select is_confirmed from payout_accounts where account_id = %(id)s", {"id": account_id})
    )


async def find_account_id(reader: Reader, organizer_id: int) -> str | None:
    """The id of the account of an organizer; None: it has none."""
    return await reader.value(
        "select account_id from payout_accounts where organizer_id = %(id)s", {"id": organizer_id}
    )


class PayoutRow(Struct):
    """An organizer, with its payout account if it has one."""

    name: str
    slug: str
    account_id: str | None
    refund_days: int
    payouts_ready: bool
    is_confirmed: bool | None


async def find_payout_row(reader: Reader, organizer_id: int) -> PayoutRow:
    """The row of an organizer's payouts."""
    [row] = await reader.rows(
        PayoutRow,
        """
        select name, slug, account_id, coalesce(refund_days, 0) as refund_days, payouts_ready, is_confirmed
          from users left join payout_accounts on organizer_id = users.id where users.id = %(id)s
        """,
        {"id": organizer_id},
    )
    return row


async def store_refund_days(tx: Tx, organizer_id: int, refund_days: int) -> bool:
    """Store the rule for cancellations. Returns whether the organizer has an account."""
    is_stored = await tx.value(
        "update payout_accounts set refund_days = %(days)s where organizer_id = %(id)s returning true",
        {"days": refund_days, "id": organizer_id},
    )
    return bool(is_stored)


async def _end_accounts(tx: Tx, condition: LiteralString, arguments: dict[str, object]) -> None:
    await tx.run(
        f"""
        with ended_account as (delete from payout_accounts where {condition} returning organizer_id, account_id),
        noted_account as (
            insert into ended_payout_accounts (organizer_id, account_id)
            select organizer_id, account_id from ended_account on conflict do nothing),
        unready_organizer as (
            update users set payouts_ready = false from ended_account where users.id = organizer_id and payouts_ready)
        update payments set ends_at = least(ends_at, now()), due_at = now()
          from ended_account
         where payments.account_id = ended_account.account_id and payments.state in ('opening', 'open')
        """,
        arguments,
    )
    await tx.notify(PAYMENTS_CHANNEL)
