"""The payouts of an organizer: the commands, and what they answer."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.kit.contract.command import Command


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
