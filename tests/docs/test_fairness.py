"""The tables of the page on the public log have the members of entries that an audit reads."""

import re
from pathlib import Path

from msgspec.structs import fields

from holdfast_verify.audit import entries

PAGE = Path(__file__).parents[2] / "docs/events/fairness.md"
STRUCTS = {
    "open": entries.OpenEntry,
    "arrival": entries.ArrivalEntry,
    "change": entries.ChangeEntry,
    "seal": entries.SealEntry,
    "confirmations": entries.ConfirmationsEntry,
    "freeze": entries.FreezeEntry,
    "draw": entries.DrawEntry,
    "place": entries.PlaceEntry,
    "release": entries.ReleaseEntry,
    "close": entries.CloseEntry,
}


def test_the_table_of_entries_has_every_member_that_the_audit_reads() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## Entries\n")[1].split("\n## ")[0]
    members: dict[str, set[str]] = {}
    kind = ""
    for row in re.findall(r"^\|(.+)\|$", section, re.MULTILINE)[2:]:
        first, named, _ = row.split("|")
        kind = first.strip("` ") or kind
        # In brackets stand values, and after a colon the members of a member.
        named = re.sub(r"\([^)]*\)", "", named).partition(":")[0]
        members.setdefault(kind, set()).update(re.findall(r"`(\w+)`", named))

    assert members == {kind: {field.encode_name for field in fields(struct)} for kind, struct in STRUCTS.items()}
