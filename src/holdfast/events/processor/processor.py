"""What the service needs from a payment processor. `stripe_api.py` is the one there is.

Every call that makes or moves something names its own key, so that it can be made again when nobody knows whether it
arrived. No call is made inside a transaction. All amounts are in minor units as `currencies.py` counts them.
"""

import datetime as dt
from collections.abc import AsyncIterator
from typing import Literal, Protocol

from msgspec import Struct


class Unreachable(Exception):
    """The processor did not answer, or not with an answer to this call. It may have acted; call again with the key.

    pause    seconds for which it wants no calls at all, since it had too many; 0: it did not say so
    """

    def __init__(self, message: str, pause: float = 0) -> None:
        super().__init__(message)
        self.pause = pause


class Refused(Exception):
    """The processor will not do this. The message says why, in its own words."""


class NewAccount(Struct):
    """An organizer who wants to be paid out."""

    organizer_id: int
    email: str
    name: str


class Checkout(Struct):
    """What a person is to pay, and where the person goes afterwards.

    ends_at    until when it may be paid; the processor may keep the page open for longer
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


class Session(Struct):
    """A page of the processor on which one payment can be made.

    state     `open`: it can be paid; `paid`; `ended`: it can never be paid
    url       where the page is, while it is open
    intent    what was paid has this id
    """

    id: str
    state: Literal["open", "paid", "ended"]
    url: str | None
    intent_id: str | None
    amount: int
    currency: str


class Refund(Struct):
    """Money that is to go back.

    has_fee    whether the payment had a fee, of which a share goes back too
    won        how many disputes about the payment were won: the processor may have refused the refund before
    """

    id: int
    intent_id: str
    amount: int
    currency: str
    has_fee: bool
    won: int = 0


class Dispute(Struct):
    """What became of a payment that the holder of the card disputes at the bank.

    state         `inquiry`: the bank asks, and no money has gone; `open`: the money has gone until it is decided;
                  `closed`: an inquiry that has ended, or a dispute that was prevented
    refundable    whether the payment can be given back nevertheless
    """

    id: str
    intent_id: str
    state: Literal["inquiry", "open", "won", "lost", "closed"]
    amount: int
    refundable: bool


class Taken(Struct):
    """A payment as it is in the processor's books.

    refunded    the sum of what went back
    disputed    whether there is a dispute about it, or was one
    """

    session_id: str
    intent_id: str
    amount: int
    currency: str
    refunded: int
    disputed: bool


class Processor(Protocol):
    """Raises `Unreachable` and `Refused` everywhere."""

    async def create_account(self, account: NewAccount) -> str:
        """The id of a new account."""
        ...

    async def is_ready(self, account_id: str) -> bool:
        """Whether the person has finished everything, so that money can be paid out."""
        ...

    async def onboarding_url(self, account_id: str, *, again_url: str, done_url: str) -> str:
        """A page on which a person gives what the processor must know. It works once, for some minutes.

        again_url    where the page sends people when it does not work any more
        """
        ...

    async def open_session(self, checkout: Checkout) -> Session: ...

    async def find_session(self, session_id: str) -> Session: ...

    async def end_session(self, session_id: str) -> Session:
        """End a session that nobody has paid. Returns how it stands then: also `paid`, if somebody was faster."""
        ...

    async def refund(self, refund: Refund, attempt: int) -> str:
        """Give money back, with the same share of the transfer and of the fee. Returns the id of the refund.

        attempt    1 for the first. A later one finds out first whether an earlier one has made the refund
        """
        ...

    async def has_failed(self, refund_id: str) -> str | None:
        """Why a refund that was made did not arrive, in the processor's words; None if it did, or still may."""
        ...

    async def find_dispute(self, dispute_id: str) -> Dispute: ...

    async def disputes_of(self, intent_id: str) -> list[Dispute]:
        """The disputes about a payment."""
        ...

    def taken_since(self, since: dt.datetime) -> AsyncIterator[Taken]:
        """All payments since a time."""
        ...
