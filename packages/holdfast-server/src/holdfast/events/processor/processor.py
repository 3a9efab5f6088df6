"""The interface to a payment processor. `stripe_api.py` implements it.

Every call that creates or moves something has its own idempotency key, so that it can be repeated when it is unknown
whether it arrived. No call is made inside a transaction. All amounts are in minor units as in `currencies.py`.
"""

import datetime as dt
from collections.abc import AsyncIterator
from typing import Literal, Protocol

from msgspec import Struct


class ProcessorUnreachable(Exception):
    """The processor did not answer this call. It may have acted; call again with the same key.

    pause    seconds for which it wants no calls at all, because it had too many; 0: it did not ask for a pause
    """

    def __init__(self, message: str, pause: float = 0) -> None:
        super().__init__(message)
        self.pause = pause


class ProcessorRefusal(Exception):
    """The processor refuses a call. The message is the processor's reason."""


class NewAccount(Struct):
    """An organizer who wants to be paid out.

    ended_count    the number of ended accounts of the organizer
    """

    organizer_id: int
    email: str
    name: str
    ended_count: int = 0


class Checkout(Struct):
    """The request for a payment page: the amount, and the pages to which the person returns.

    ends_at    the time until which it may be paid; the processor may keep the page open for longer
    """

    payment_id: int
    event_id: int
    amount: int
    fee: int
    currency: str
    account_id: str
    title: str
    email: str | None
    language: str
    ends_at: dt.datetime
    done_url: str
    back_url: str


SessionStatus = Literal["open", "paid", "ended"]
DisputeStatus = Literal["inquiry", "open", "won", "lost", "closed"]


class CheckoutSession(Struct):
    """A page of the processor on which one payment can be made.

    status       `open`: it can be paid; `paid`; `ended`: it can never be paid
    url          the address of the page, while it is open
    intent_id    the id of the payment, if one was made
    """

    id: str
    status: SessionStatus
    url: str | None
    intent_id: str | None
    amount: int
    currency: str


class RefundRequest(Struct):
    """A request to refund money.

    has_fee              whether the payment had a fee, of which a share is refunded too
    won_dispute_count    the number of disputes about the payment that were won. If there are some, the processor may
                         have refused the refund before
    """

    id: int
    intent_id: str
    amount: int
    currency: str
    has_fee: bool
    won_dispute_count: int = 0


class Dispute(Struct):
    """A dispute: the holder of the card disputes a payment at the bank.

    status        `inquiry`: the bank asks, and has taken no money; `open`: the bank holds the money until it decides;
                  `closed`: an inquiry that has ended, or a dispute that was prevented
    refundable    whether the payment can be refunded nevertheless
    """

    id: str
    intent_id: str
    status: DisputeStatus
    amount: int
    refundable: bool


class ProcessorPayment(Struct):
    """A payment in the processor's books.

    refunded    the sum of the refunds
    disputed    whether it has or had a dispute
    """

    session_id: str
    intent_id: str
    amount: int
    currency: str
    refunded: int
    disputed: bool


class Processor(Protocol):
    """A payment processor. Every method can raise `ProcessorUnreachable` and `ProcessorRefusal`."""

    async def create_account(self, account: NewAccount) -> str:
        """Create an account. Returns its id."""
        ...

    async def is_ready(self, account_id: str) -> bool:
        """Whether the onboarding is finished, so that money can be paid out."""
        ...

    async def onboarding_url(self, account_id: str, *, again_url: str, done_url: str) -> str:
        """The address of a page on which a person enters the data for the processor. It works once, for some minutes.

        again_url    the address to which the page redirects when it does not work any more
        """
        ...

    async def open_session(self, checkout: Checkout) -> CheckoutSession: ...

    async def find_session(self, session_id: str) -> CheckoutSession: ...

    async def end_session(self, session_id: str) -> CheckoutSession:
        """End an unpaid session. Returns the session afterwards: it is `paid` if the payment was faster."""
        ...

    async def refund(self, refund: RefundRequest, attempt: int) -> str:
        """Refund money, with the same share of the transfer and of the fee. Returns the id of the refund.

        attempt    1 for the first. A later attempt first checks whether an earlier one has made the refund
        """
        ...

    async def refund_failure(self, refund_id: str) -> str | None:
        """The processor's reason why a refund that was made did not arrive; None if it did, or still may."""
        ...

    async def find_dispute(self, dispute_id: str) -> Dispute: ...

    async def disputes_of(self, intent_id: str) -> list[Dispute]:
        """The disputes about a payment."""
        ...

    def payments_since(self, since: dt.datetime) -> AsyncIterator[ProcessorPayment]:
        """All payments in sessions that were opened since a time."""
        ...
