"""The table of frauds in docs/events/frauds.md, which `python -m tests.events.log.fraud_table` writes.

Tests plant each of them, and compare the message, which has `…` for what differs from case to case.
"""

import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[3] / "docs/events/frauds.md"
TABLE = re.compile(r"(?<=<!-- frauds: python -m tests.events.log.fraud_table -->\n).*?(?=<!-- end -->)", re.DOTALL)


class FraudRow(NamedTuple):
    """One fraud.

    fraud       what the operator does
    command     what finds it, after `holdfast-verify check`; empty: nothing does
    message     what it says then, or what passes
    finders     who finds it, and why no other reader does
    """

    fraud: str
    command: str
    message: str
    finders: str

    def is_in(self, findings: list[str]) -> bool:
        """Whether the findings of a check say the message."""
        pattern = re.escape(self.message).replace("…", ".*")
        return any(re.search(pattern, finding) for finding in findings)


LOG, SAVED, PUBLISHED = "LOG", "LOG --head FILE", "LOG --head-log"
RECEIPT, LINK = "RECEIPT", "RECEIPT --registration LINK"
ALL_READERS = "every reader"
WITH_HEAD = "readers with an earlier head or the head log"
WITH_RECEIPT = "holders of the receipt of one of them"

ORDER_FRAUDS = {
    "people swapped": FraudRow(
        "swaps two people, not their times",
        RECEIPT,
        "The receipt says …, but the log says …",
        WITH_RECEIPT,
    ),
    "people and times swapped": FraudRow(
        "swaps two arrivals and their times",
        LOG,
        "Number … arrived at …, before the one with the number before it",
        ALL_READERS,
    ),
    "dropped before the seal": FraudRow(
        "leaves a person out before the seal",
        RECEIPT,
        "The arrival at … is not in the log, … seconds later: it was promised within 60",
        "the holder of the receipt only: numbers have no gap",
    ),
    "invented before the seal": FraudRow(
        "invents an earlier person before the seal",
        "",
        "passes",
        "no reader: the seal comes about a second later under load, at most 60",
    ),
    "dropped after the seal": FraudRow(
        "takes an entry out of the sealed log",
        SAVED,
        "The first … entries are not the ones of the saved head: the log was rewritten, or forked",
        WITH_HEAD,
    ),
    "inserted after the seal": FraudRow(
        "puts an entry into the sealed log",
        PUBLISHED,
        "The first … entries are not the ones of entry … of …/log/heads: the log was rewritten, or forked",
        WITH_HEAD,
    ),
    "dropped with its row": FraudRow(
        "deletes the last registration and its entry",
        PUBLISHED,
        "A head of … entries was published (entry … of …), but the log has … now: the later ones were taken back",
        WITH_HEAD,
    ),
    "outcome changed": FraudRow(
        "gives a seat to a late person, in the log too",
        LOG,
        "Number … was registered, although no seat was free",
        ALL_READERS,
    ),
    "cancellation forged": FraudRow(
        "cancels in the name of the person",
        RECEIPT,
        "The log says that you cancelled at …. If you did not, this receipt is the evidence",
        "the holder of the receipt only: people do cancel",
    ),
    "cancellation forged before settlement": FraudRow(
        "the same, before there is a number",
        RECEIPT,
        "The log says that you cancelled at …. If you did not, this receipt is the evidence",
        "the holder of the receipt only: people do cancel",
    ),
    "settled against the log": FraudRow(
        "gives seats to others than its log says",
        LINK,
        "The page of the registration shows no place. The log leads to a seat",
        "holders of the link of one of them",
    ),
    "counts against the log": FraudRow(
        "gives out more seats than its log says",
        LOG,
        "The page shows … free seat… The log leads to … free seat",
        ALL_READERS,
    ),
    "fork": FraudRow(
        "continues from an older data directory",
        SAVED,
        "The saved head has … entries, but the log has only … now",
        "readers with an earlier head, a receipt of what was lost, or a witness",
    ),
    "key replaced": FraudRow(
        "signs everything again with a new key",
        SAVED,
        "The saved head is not signed with the key that the log serves now: the key was replaced",
        "readers with the key or a head that it signed",
    ),
    "switched off and on": FraudRow(
        "switches the log off, gives out seats, switches it on",
        LOG,
        "From … to … the log was switched off. What happened then is in no log. Before it, …; after it, …",
        "every reader, as a `NOTICE`: organizers may do that; what happened then is in no log",
    ),
    "restored backup": FraudRow(
        "restores a backup to get rid of the last registrations",
        RECEIPT,
        "The arrival at … is not in the log, … A backup was restored at …, which loses what came shortly before",
        "holders of a receipt or head of them, as a `NOTICE`: real backups lose them too",
    ),
    "restored backup without an entry": FraudRow(
        "changes seats in a backup before it is restored",
        LOG,
        "A backup was restored at …. What the service did after … and before is in no log. Before it, …; after it, …",
        "every reader, as a `NOTICE`: real backups lose entries; what happened then is in no log",
    ),
    "proof of another log": FraudRow(
        "gives a person a proof of another log",
        "PROOF --log LOG",
        "The proof is of another log, …",
        "people who compare the log's name",
    ),
}

READERS_OF_DRAW = "every reader †"

DRAW_FRAUDS = {
    "list swapped": FraudRow(
        "puts another person into the frozen list", LOG, "The frozen list is not the one in the log", READERS_OF_DRAW
    ),
    "entry removed": FraudRow(
        "takes an entry out after the freeze",
        LOG,
        "The freeze has … entries, but the log before it has not just the tickets",
        READERS_OF_DRAW,
    ),
    "late entry": FraudRow(
        "puts a late person into the list",
        LOG,
        "Ticket … came after the list was closed, and is in it",
        READERS_OF_DRAW,
    ),
    "early entry left out": FraudRow(
        "leaves out a person who came in time",
        LOG,
        "Ticket … came before the list was closed, and is not in it",
        READERS_OF_DRAW,
    ),
    "another round": FraudRow(
        "draws with another round of the beacon",
        LOG,
        "The list was drawn with round …, but round … was named before",
        READERS_OF_DRAW,
    ),
    "order altered": FraudRow(
        "changes the order", LOG, "The order of the draw does not follow from the freeze and the round", READERS_OF_DRAW
    ),
    "out of turn": FraudRow(
        "gives a place too early",
        LOG,
        "Number … got an outcome at …, when it was the turn of number …",
        READERS_OF_DRAW,
    ),
    "drawn twice": FraudRow("draws a second time", LOG, "The list was drawn more than once", READERS_OF_DRAW),
    "frozen late": FraudRow(
        "freezes the list when the round may be known",
        LOG,
        "The list was frozen at …, less than 30 seconds before the round",
        "every reader; if the time is false too, readers with a head from before the round",
    ),
    "confirmed late": FraudRow(
        "calls an entry confirmed after the freeze",
        LOG,
        "Number … was confirmed at …, after the list was frozen",
        READERS_OF_DRAW,
    ),
    "confirmed invention": FraudRow(
        "invents confirmed entries before the list closes",
        "",
        "passes",
        "no reader: the log says how many are confirmed, not who",
    ),
}

FRAUDS = {**ORDER_FRAUDS, **DRAW_FRAUDS}


def table() -> str:
    """The tables of the page."""
    head = "| the operator … | found with `holdfast-verify check` | who finds it |\n|---|---|---|\n"
    return "\n".join(head + "".join(map(_line, rows.values())) for rows in (ORDER_FRAUDS, DRAW_FRAUDS))


def _line(row: FraudRow) -> str:
    command = f"`{row.command}`" if row.command else "nothing"
    return f"| {row.fraud} | {command} | {row.finders} |\n"


def page() -> str:
    """The page, with the table as it is now."""
    return TABLE.sub(lambda _: table(), PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
