"""The tables of the types of webhooks, made from the messages of each service.

`python -m tests.docs.message_types` brings the pages up to date.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.events.webhooks import messages as of_events
from holdfast.inventory.webhooks import messages as of_inventory
from holdfast.kit.webhooks.model import MessageType

DOCS = Path(__file__).parents[2] / "docs"

PAGES: Mapping[str, Sequence[MessageType]] = {
    "events/webhooks.md": of_events.MESSAGES,
    "inventory/webhooks.md": of_inventory.MESSAGES,
}
"""Each page, with the types of messages that it lists."""

TABLE = re.compile(r"(?<=<!-- types: python -m tests.docs.message_types -->\n).*?(?=<!-- end -->)", re.DOTALL)


def table(messages: Sequence[MessageType]) -> str:
    """The types, when each is sent, and the members of its data, which several in a row may share."""
    lines = ["| type | sent when | `data` |", "|---|---|---|"]
    members_above = ""
    for message in messages:
        members = ", ".join(f"`{name}`" for name in message.example.__struct_fields__)
        data = "the same" if members == members_above else members
        lines.append(f"| `{message.name}` | {message.description} | {data} |")
        members_above = members
    return "\n".join(lines) + "\n"


def page(name: str) -> str:
    """A page with the table of today."""
    return TABLE.sub(lambda _: table(PAGES[name]), (DOCS / name).read_text(encoding="utf-8"))


if __name__ == "__main__":
    for name in PAGES:
        (DOCS / name).write_text(page(name), encoding="utf-8")
