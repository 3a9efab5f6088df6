"""Waits until a log has caught up with what its service shows: what is done is in the log up to 60 seconds later."""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Hashable
from typing import NamedTuple

from holdfast_verify.audit.audit import Audit
from holdfast_verify.audit.entries import AuditedEntry
from holdfast_verify.check.log_reader import LogEnd, open_head, read_growth
from holdfast_verify.check.log_source import LogSource, VerificationError
from holdfast_verify.check.options import CheckProgress
from holdfast_verify.check.trusted_key import TrustedKey

TIMEOUT_SECONDS = 65.0
"""Seconds for which a difference is read again."""

PAUSE_SECONDS = 1.0
MAX_ANSWER_SECONDS = 60.0

FollowedEntry = Callable[[int, AuditedEntry | None], object]


class LogFollower:
    """Reads what is logged after a log was read.

    audit    an audit of its own, which goes on from that of the log
    """

    def __init__(self, source: LogSource, key: TrustedKey, audit: Audit, end: LogEnd) -> None:
        self.source, self.audit = source, copy.deepcopy(audit)
        self.readers: list[FollowedEntry] = []
        self._key, self._end = key, end

    async def follow(self, after_entry: Callable[[], object]) -> None:
        """Read what was logged since. Raises `VerificationError`."""

        def read(index: int, entry: bytes) -> None:
            parsed = self.audit.read(entry)
            for reader in self.readers:
                reader(index, parsed)
            after_entry()

        head = open_head(await self.source.get("checkpoint"), self._key, "The newer head of the log")
        self._end = await read_growth(self.source, head.checkpoint, self._end, read)


class CaughtUp(NamedTuple):
    """What the service shows is what the log leads to."""

    value: Hashable


class Difference(NamedTuple):
    """What the service shows and what the log leads to, when the wait was over. `sentence` has both."""

    public_value: Hashable
    logged_value: Hashable
    sentence: str

    def __str__(self) -> str:
        return self.sentence.format(public=self.public_value, logged=self.logged_value)


async def wait_until_equal(
    follower: LogFollower,
    read_public: Callable[[], Awaitable[Hashable]],
    logged: Callable[[], Hashable],
    sentence: str,
    progress: CheckProgress,
) -> CaughtUp | Difference:
    """Read what the service shows, and the log, until they are equal, but not for ever. Raises `VerificationError`.

    read_public    reads what the service shows
    logged         what the log leads to, as far as the follower has read it
    sentence       says a difference, with `shown` and `logged`
    """
    logged_values, readings = {logged()}, set[Hashable]()
    clock = asyncio.get_running_loop().time
    give_up_at = clock() + TIMEOUT_SECONDS
    try:
        async with asyncio.timeout_at(give_up_at + MAX_ANSWER_SECONDS):
            while True:
                value = await read_public()
                readings.add(value)
                if value not in logged_values:
                    await follower.follow(lambda: logged_values.add(logged()))
                # Under load the log is always a little behind. It reaches what was shown a moment before.
                for reached in readings & logged_values:
                    return CaughtUp(reached)
                difference = Difference(value, logged(), sentence)
                if (seconds := give_up_at - clock()) < 0:
                    return difference
                progress.wait(f"{difference} The log may be up to 60 seconds behind: waiting, {seconds:.0f} s left.")
                await asyncio.sleep(PAUSE_SECONDS)
    except TimeoutError as error:
        raise VerificationError("The service answered too slowly.") from error
