"""A model of one queue: its visitors, its pace and schedule, and its release tokens, asked one request after the other.

Time is a number of seconds that the caller moves. An answer is a refusal's code, or what the model can tell of the
service's answer.
"""

from dataclasses import dataclass, field, replace
from math import ceil, floor
from typing import Any

Answer = dict[str, Any]
INTERVAL = 60
"""Seconds in which `rate` visitors are released."""
CATCH_UP = 15
"""The most seconds for which late releases are made up for."""


@dataclass
class Token:
    """A release token. `number` counts the tokens of the queue."""

    number: int
    expires: float
    uses: int = 0
    consumed: bool = False


@dataclass
class QueueVisitor:
    """A visitor, and its present ticket."""

    ticket: int
    token: Token | None = None


@dataclass(frozen=True)
class Terms:
    """What the organizer decides. `size` is the most who may wait; `ttl` is in seconds."""

    rate: int
    active: bool = True
    size: int | None = None
    starts: float | None = None
    ends: float | None = None
    ttl: int = 60


@dataclass
class Queue:
    """A queue. `paced` is the time up to which the rate was used, `rated` the time since when it applies.

    `is_loose` says that `paced` was computed from the time of a late release, which is known to a fraction of a second.
    """

    terms: Terms
    now: float = 0
    tickets: int = 0
    paced: float = 0
    rated: float = -1
    is_loose: bool = False
    visitors: dict[str, QueueVisitor] = field(default_factory=dict[str, QueueVisitor])
    released: list[float] = field(default_factory=list[float])
    tokens: int = 0

    @property
    def waiting(self) -> int:
        return self.tickets - len(self.released)

    @property
    def has_ended(self) -> bool:
        return self.terms.ends is not None and self.terms.ends <= self.now

    def join(self, name: str) -> str:
        if self._is_in(name):
            return "accepted"
        if self.has_ended:
            return "queue_ended"
        if not self.terms.active:
            return "queue_inactive"
        if self.terms.size is not None and self.waiting >= self.terms.size:
            return "queue_full"
        if self.waiting == 0:
            self.paced = self.now
        self.tickets += 1
        self.visitors[name] = QueueVisitor(self.tickets)
        return "accepted"

    def status(self, name: str) -> Answer:
        """The place of a visitor. A released visitor gets a token, and later the same one again."""
        if not self._is_in(name):
            return {}
        visitor = self.visitors[name]
        position = visitor.ticket - len(self.released)
        if position > 0:
            until_start = max(0, ceil((self.terms.starts or 0) - self.now))
            return {"position": position, "wait": until_start + ceil(position * INTERVAL / self.terms.rate)}
        if visitor.token is None:
            visitor.token = Token(self.tokens, self.now + self.terms.ttl)
            self.tokens += 1
        return {"token": visitor.token.number}

    def verify(self, number: int, *, consume: bool) -> Answer | str:
        """Show a token: how often it was shown, or why it is not valid."""
        token = next(
            (visitor.token for visitor in self.visitors.values() if visitor.token and visitor.token.number == number),
            None,
        )
        if token is None:
            return "revoked"
        if token.consumed:
            return "used"
        if token.expires <= self.now:
            return "revoked"
        token.uses += 1
        token.consumed = consume
        return {"uses": token.uses}

    def change(self, **fields: Any) -> Answer | str:
        """Change the terms. A queue that goes on, or whose rate changes, has used the rate up to now."""
        before, after = self.terms, replace(self.terms, **fields)
        if after.starts is not None and after.ends is not None and after.starts >= after.ends:
            return "validation_failed"
        self.terms = after
        if after.rate != before.rate or (after.active and not before.active):
            self.paced = self.now
        if after.rate != before.rate:
            self.rated = self.now
        return self.answer()

    def answer(self) -> Answer:
        return {"active": self.terms.active, "queue_length": 0 if self.has_ended else self.waiting}

    def tick(self, seconds: float) -> None:
        """Let time pass, and release at the end of it: one visitor a step, at most `rate` in an interval."""
        self.now += seconds
        if not self.terms.active or self.has_ended or not self.waiting:
            return
        step = INTERVAL / self.terms.rate
        base = max(self.paced, self.terms.starts or 0, self.now - step - CATCH_UP)
        recent = sum(moment > max(self.rated, self.now - INTERVAL) for moment in self.released)
        visitors = min(self.waiting, self.terms.rate - recent, floor((self.now - base) / step))
        if visitors > 0:
            everybody = visitors == self.waiting
            self.is_loose = not everybody and (self.is_loose or base == self.now - step - CATCH_UP)
            self.paced = self.now if everybody else base + visitors * step
            self.released += [self.now] * visitors

    def _is_in(self, name: str) -> bool:
        """Whether a visitor waits, or was released and may still come in."""
        visitor = self.visitors.get(name)
        if visitor is None:
            return False
        if visitor.ticket > len(self.released):
            return not self.has_ended
        if visitor.token:
            return not visitor.token.consumed and visitor.token.expires > self.now
        return self.released[visitor.ticket - 1] + self.terms.ttl > self.now

    def is_unsure_in(self, seconds: float) -> bool:
        """Whether a release or the end of a token may come just before or just after this many seconds from now."""
        at, step = self.now + seconds, INTERVAL / self.terms.rate
        tokens = [visitor.token.expires for visitor in self.visitors.values() if visitor.token]
        # The service counts the time of tokens in whole seconds.
        return any(ticket - 1 <= at < ticket for ticket in tokens) or (self.is_loose and (at - self.paced) % step < 1)
