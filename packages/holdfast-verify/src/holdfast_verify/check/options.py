"""The options of a check, and what it tells while it goes on."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol


class Options(NamedTuple):
    """How something is checked.

    key            the trusted key as a vkey; None: the one that the log serves
    saved_head     the file of the head that was saved before, and is saved now
    person         for whom a receipt is
    log            where the log of a receipt is: an address or a directory; None: where the receipt says
    is_offline     whether a receipt is checked without its log
    mail_line      the line of a mail about the head that the log had then
    witnesses      the vkeys of the witnesses that must have cosigned the head log
    reads_head_log whether every head of the log is looked up in the head log
    registration   the link of the person's own registration, whose page is compared with the log
    """

    key: str | None = None
    saved_head: Path | None = None
    person: str | None = None
    log: str | None = None
    is_offline: bool = False
    mail_line: str | None = None
    witnesses: Sequence[str] = ()
    reads_head_log: bool = False
    registration: str | None = None


class CheckProgress(Protocol):
    """Shows how far a check is."""

    def count(self, more: int, total: int) -> None:
        """Count `more` read entries, of `total`."""
        ...

    def wait(self, text: str) -> None:
        """Show what the program waits for."""
        ...
