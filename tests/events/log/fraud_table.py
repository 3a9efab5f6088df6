"""The table of frauds in docs/events/frauds.md, which `python -m tests.events.log.fraud_table` writes.

Tests plant each of them. A message has `…` for what differs from case to case.
"""

import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[3] / "docs/events/frauds.md"
TABLE = re.compile(r"(?<=<!-- frauds: python -m tests.events.log.fraud_table -->\n).*?(?=<!-- end -->)", re.DOTALL)


class FraudRow(NamedTuple):
    """One fraud.

    fraud       what the operator does
    command     what finds it, after `holdfast verify`; empty: nothing does
    message     what it says then, or what passes
    unseen_by   who cannot find it, and why
    """

    fraud: str
    command: str
    message: str
    unseen_by: str

    def is_in(self, findings: list[str]) -> bool:
        """Whether the findings of a check say the message."""
        pattern = re.escape(self.message).replace("…", ".*")
        return any(re.search(pattern, finding) for finding in findings)


LOG, SAVED, PUBLISHED = "LOG", "LOG --head FILE", "LOG --head-log"
RECEIPT, LINK = "RECEIPT", "RECEIPT --registration LINK"
NOBODY = "nobody: everybody can check the log"
NO_HEAD = "people who have no earlier head, and do not read the head log: the new log is right in itself"
NO_RECEIPT = "people who have not the receipt of one of them: the log does not say who is who"

ORDER_FRAUDS = {
    "people swapped": FraudRow(
        "puts one person in the place of another, the times stay",
        RECEIPT,
        "The receipt says …, but the log says …",
        NO_RECEIPT,
    ),
    "people and times swapped": FraudRow(
        "puts one arrival before another, with its time",
        LOG,
        "Number … arrived at …, before the one with the number before it",
        NOBODY,
    ),
    "dropped before the seal": FraudRow(
        "leaves a person out before the log is sealed",
        RECEIPT,
        "The arrival at … is not in the log, … seconds later: it was promised within 60",
        "everybody else: the numbers have no gap",
    ),
    "invented before the seal": FraudRow(
        "invents a person with an earlier time, before the log is sealed",
        "",
        "passes",
        "anybody: until the seal, half a second later under load and 60 seconds at most, nothing says who has come",
    ),
    "dropped after the seal": FraudRow(
        "takes an entry out of the sealed log, and signs it again",
        SAVED,
        "The first … entries are not the ones of the saved head: the log was rewritten, or forked",
        NO_HEAD,
    ),
    "inserted after the seal": FraudRow(
        "puts an entry into the sealed log, and signs it again",
        PUBLISHED,
        "The first … entries are not the ones of entry … of …/log/heads: the log was rewritten, or forked",
        NO_HEAD,
    ),
    "dropped with its row": FraudRow(
        "deletes the last registration and its entry, and signs the log again",
        PUBLISHED,
        "A head of … entries was published (entry … of …), but the log has … now: the later ones were taken back",
        NO_HEAD,
    ),
    "outcome changed": FraudRow(
        "gives a seat to a person who is late, in the log too",
        LOG,
        "Number … was registered, although no seat was free",
        NOBODY,
    ),
    "cancellation forged": FraudRow(
        "removes a registration in the name of the person",
        RECEIPT,
        "The log says that you cancelled at …. If you did not, this receipt is the evidence",
        "everybody else: people do cancel",
    ),
    "cancellation forged before settlement": FraudRow(
        "removes a registration in the name of the person, before it has a number",
        RECEIPT,
        "The log says that you cancelled at …. If you did not, this receipt is the evidence",
        "everybody else: people do cancel",
    ),
    "settled against the log": FraudRow(
        "gives seats in its database to others than in its log",
        LINK,
        "The page of the registration shows no place. The log leads to a seat",
        "people who have not the link of one of them, as long as the counts are the same",
    ),
    "counts against the log": FraudRow(
        "gives out more seats than its log says",
        LOG,
        "The page shows … free seat… The log leads to … free seat",
        NOBODY,
    ),
    "fork": FraudRow(
        "goes back to an older data directory, and on from there",
        SAVED,
        "The saved head has … entries, but the log has only … now",
        "people who have neither an earlier head, nor a receipt of what was lost, nor a witness: all of it went back",
    ),
    "key replaced": FraudRow(
        "makes a new key, and signs everything again with it",
        SAVED,
        "The saved head is not signed with the key that the log serves now: the key was replaced",
        "people who have kept neither the key nor a head that it has signed",
    ),
    "switched off and on": FraudRow(
        "switches the log off, gives out seats, and switches it on again",
        LOG,
        "From … to … the log was switched off. What happened then is in no log. Before it, …; after it, …",
        "everybody: what happened then is in no log. That it was off is a notice, since organizers may do that",
    ),
    "restored backup": FraudRow(
        "restores a backup to get rid of the last registrations",
        RECEIPT,
        "The arrival at … is not in the log, … A backup was restored at …, which loses what came shortly before",
        "people who have no receipt or head of them. It is a notice, since a real backup loses them too",
    ),
    "restored backup without an entry": FraudRow(
        "changes seats in a backup before it is restored",
        LOG,
        "A backup was restored at …. What the service did after … and before is in no log. Before it, …; after it, …",
        "everybody: what happened then is in no log. That it differs is a notice, since a real backup loses entries",
    ),
    "proof of another log": FraudRow(
        "gives a person the proof of a number in another log",
        "PROOF --log LOG",
        "The proof is of another log, …",
        "people who do not compare the name of the log in the report",
    ),
}

NO_KEPT_HEAD = "nobody †"

DRAW_FRAUDS = {
    "list swapped": FraudRow(
        "puts another person into the frozen list", LOG, "The frozen list is not the one in the log", NO_KEPT_HEAD
    ),
    "entry removed": FraudRow(
        "takes an entry out after the freeze",
        LOG,
        "The freeze has … entries, but the log before it has not just the tickets",
        NO_KEPT_HEAD,
    ),
    "late entry": FraudRow(
        "puts a person who came after the list had closed into it",
        LOG,
        "Ticket … came after the list was closed, and is in it",
        NO_KEPT_HEAD,
    ),
    "early entry left out": FraudRow(
        "leaves out a person who came in time",
        LOG,
        "Ticket … came before the list was closed, and is not in it",
        NO_KEPT_HEAD,
    ),
    "another round": FraudRow(
        "draws with another round of the beacon",
        LOG,
        "The list was drawn with round …, but round … was named before",
        NO_KEPT_HEAD,
    ),
    "order altered": FraudRow(
        "changes the order", LOG, "The order of the draw does not follow from the freeze and the round", NO_KEPT_HEAD
    ),
    "out of turn": FraudRow(
        "gives a place too early to a person who was drawn later",
        LOG,
        "Number … got an outcome at …, when it was the turn of number …",
        NO_KEPT_HEAD,
    ),
    "drawn twice": FraudRow("draws a second time", LOG, "The list was drawn more than once", NO_KEPT_HEAD),
    "frozen late": FraudRow(
        "freezes the list when the round may be known",
        LOG,
        "The list was frozen at …, less than 30 seconds before the round",
        "people who have kept no head from before the round, if the time of the entry is false too",
    ),
    "confirmed late": FraudRow(
        "calls an entry confirmed after the freeze",
        LOG,
        "Number … was confirmed at …, after the list was frozen",
        NO_KEPT_HEAD,
    ),
    "confirmed invention": FraudRow(
        "invents entries before the list closes, and calls them confirmed",
        "",
        "passes",
        "anybody: the log shows how many are confirmed, and not who they are",
    ),
}

FRAUDS = {**ORDER_FRAUDS, **DRAW_FRAUDS}


def table() -> str:
    """The tables of the page."""
    head = "| the operator … | found with `holdfast verify` | which says | who cannot find it |\n|---|---|---|---|\n"
    return "\n".join(head + "".join(map(_line, rows.values())) for rows in (ORDER_FRAUDS, DRAW_FRAUDS))


def _line(row: FraudRow) -> str:
    command = f"`{row.command}`" if row.command else "nothing finds it"
    message = f"“{row.message}”" if row.command else "“Everything that was checked is right.”"
    return f"| {row.fraud} | {command} | {message} | {row.unseen_by} |\n"


def page() -> str:
    """The page, with the table as it is now."""
    return TABLE.sub(lambda _: table(), PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
