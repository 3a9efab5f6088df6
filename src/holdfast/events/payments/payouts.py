"""What an organizer sees and decides of payouts: whether they are ready, and the rule for cancellations."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.events.problems import PAYMENTS_NOT_CONFIGURED
from holdfast.events.resources import Reader, Tx
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.problems import NOT_FOUND, refuses


class LookAtPayouts(Command):
    """Asks how the payouts of the organizer stand."""


class SetRefundRule(Command):
    """Asks that who cancels until so many days before an event gets everything back, and later nothing."""

    refund_days: Annotated[int, Meta(ge=0, le=3650)]


class Payouts(Struct):
    """The payouts of an organizer.

    state          `unavailable`: this service takes no payments; `none`: there is no account; `unfinished`; `ready`
    fee_percent    what the platform keeps of each payment
    refund_days    see `SetRefundRule`
    """

    state: Literal["unavailable", "none", "unfinished", "ready"]
    account_id: str | None
    fee_percent: int
    refund_days: int


async def look(reader: Reader, caller: Caller, command: LookAtPayouts) -> Payouts:
    """Read how the payouts of the organizer stand."""
    settings = reader.resources.settings
    found = await reader.tuples(
        """
        select account_id, refund_days, payouts_ready
          from payout_accounts join users on users.id = organizer_id where organizer_id = %(id)s
        """,
        {"id": caller.tenant},
    )
    account_id, refund_days, is_ready = found[0] if found else (None, 0, False)
    state = "ready" if is_ready else "unfinished" if account_id else "none"
    return Payouts(
        state if settings.takes_payments else "unavailable", account_id, settings.platform_fee_percent, refund_days
    )


@refuses(NOT_FOUND, PAYMENTS_NOT_CONFIGURED)
async def set_rule(tx: Tx, caller: Caller, command: SetRefundRule) -> None:
    """Change the rule for cancellations. It applies to seats that are held from now on."""
    tx.resources.require_processor()
    changed = await tx.value(
        "update payout_accounts set refund_days = %(days)s where organizer_id = %(id)s returning true",
        {"days": command.refund_days, "id": caller.tenant},
    )
    if not changed:
        raise NOT_FOUND("There is no account for payouts yet.", hint="Connect one first.")
