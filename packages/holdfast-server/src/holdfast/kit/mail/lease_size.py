"""The size of a lease of mails: from how many shards it takes how many mails."""

MIN_MAILS_OF_LEASE = 8
MAX_MAILS_OF_LEASE = 32
"""Mails that are rendered together and sent before their shards are given back: as many as leave within
`LEASE_TURN_SECONDS`, between these two."""

MAX_SHARDS_OF_LEASE = 8
"""Shards that are leased together while each has few due mails."""

LEASE_TURN_SECONDS = 1.0
"""Seconds that the mails of a lease take, where the mail server takes them fast enough."""


class LeaseSize:
    """How much the next lease takes: as many mails as can be sent within its time, from as few shards as have that many
    mails.

    So mails that become due one by one are leased, rendered and sent together, and many due mails are spread over the
    connections of all processes.
    """

    def __init__(self) -> None:
        self.mails = MIN_MAILS_OF_LEASE
        self.shards = MAX_SHARDS_OF_LEASE
        self.has_more = False
        """Whether there may be more due mails than the last lease could send."""

    def note_due(self, count: int, limit: int) -> None:
        """Note how many due mails the shards of a lease had, up to a limit."""
        self.has_more = count == limit
        self.shards = max(self.shards // 2, 1) if self.has_more else min(self.shards * 2, MAX_SHARDS_OF_LEASE)

    def note_duration(self, count: int, seconds: float) -> None:
        """Note how many seconds a number of mails took on one connection."""
        affordable = int(count * LEASE_TURN_SECONDS / max(seconds, 0.001))
        self.mails = min(max(affordable, MIN_MAILS_OF_LEASE), MAX_MAILS_OF_LEASE)
