"""What a check tells while it goes on: how much is read, and what it waits for."""

from typing import Protocol


class CheckProgress(Protocol):
    """Shows how far a check is."""

    def count(self, more: int, total: int) -> None:
        """So many more entries were read, of so many in all."""
        ...

    def wait(self, text: str) -> None:
        """It waits for something that the text names."""
        ...


class NoProgress:
    """Shows nothing."""

    def count(self, more: int, total: int) -> None:
        pass

    def wait(self, text: str) -> None:
        pass
