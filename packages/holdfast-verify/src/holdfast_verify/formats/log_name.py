"""The names of public logs: what a log is of, its path, and what it calls itself."""

from typing import Literal, NamedTuple

Noun = Literal["events", "queues", "heads"]
"""What has a log, as addresses say it. There is one log of heads, the head log."""


class LogName(NamedTuple):
    """Which log is meant.

    noun         what the log is of
    id           the id of the event or queue; 0 for the head log
    generation   the generation of its log, from 1
    """

    noun: Noun
    id: int
    generation: int = 1

    @property
    def subject(self) -> str:
        """The event or queue, as commitments and sentences say it: `event 7`."""
        return "all heads" if self.noun == "heads" else f"{self.noun[:-1]} {self.id}"

    @property
    def path(self) -> str:
        """The path of the addresses of the log; the first generation has none of its own."""
        path = "heads" if self.noun == "heads" else f"{self.noun}/{self.id}"
        return f"/log/{path}" + (f"/{self.generation}" if self.generation > 1 else "")

    def origin(self, base_url: str) -> str:
        """What the log calls itself: its address without a scheme."""
        return base_url.partition("://")[2] + self.path
