"""The payouts of an organizer: whether they are ready, and the rule for cancellations."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.events.problems import PAYMENTS_NOT_CONFIGURED
from holdfast.events.resources import Reader, Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import NOT_FOUND, refuses


class GetPayouts(Command):
    """Asks for the status of the organizer's payouts."""


class SetRefundRule(Command):
    """Asks that cancellations until so many days before an event are refunded in full, and later ones not at all."""

    refund_days: Annotated[int, Meta(ge=0, le=3650)]


class Payouts(Struct):
    """The payouts of an organizer.

    name, slug     the organizer
    state          `unavailable`: this service takes no payments; `none`: there is no account; `unconfirmed`: there
                   is one, and the owner has not confirmed it; `unfinished`; `ready`
    fee_percent    the share of the platform in each payment
    refund_days    see `SetRefundRule`
    """

    name: str
    slug: str
    state: Literal["unavailable", "none", "unconfirmed", "unfinished", "ready"]
    account_id: str | None
    fee_percent: int
    refund_days: int


async def get(reader: Reader, caller: Caller, command: GetPayouts) -> Payouts:
    """Read the status of the organizer's payouts."""
    settings = reader.resources.settings
    [(name, slug, account_id, refund_days, is_ready, is_confirmed)] = await reader.tuples(
        """
        select name, slug, account_id, coalesce(refund_days, 0), payouts_ready, is_confirmed
          from users left join payout_accounts on organizer_id = users.id where users.id = %(id)s
        """,
        {"id": caller.tenant},
    )
    state = "none" if not account_id else "unconfirmed" if not is_confirmed else "ready" if is_ready else "unfinished"
    return Payouts(
        name,
        slug,
        state if settings.takes_payments else "unavailable",
        account_id,
        settings.platform_fee_percent,
        refund_days,
    )


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
