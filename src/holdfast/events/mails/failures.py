"""Why a mail has failed, of the few reasons that organizers can do something about."""

import re
from typing import Literal

from holdfast.kit.mail import NO_ADDRESS
from holdfast.kit.outbox import UNWRITTEN

Why = Literal["no_address", "unknown", "full", "unwanted", "late", "refused", "unwritten"]
"""
no_address    mail cannot be sent to the address at all
unknown       the mail server does not know the address, or takes nothing for it
full          the mailbox is full
unwanted      the mail server takes the mail for unwanted, or does not trust the sender
late          the mail server has put it off for three days, or could not be reached
refused       the mail server refuses it, for another reason
unwritten     the mail could not be written
"""

_REPLY = re.compile(r"([245])(\d\d)(?:[ -]+[245]\.(\d{1,3})\.(\d{1,3})\b)?")
"""The answer of a mail server: its code (RFC 5321), and often a second one that says more (RFC 3463)."""


def why(error: str) -> Why:
    """The reason in what was stored of the last attempt."""
    if error == NO_ADDRESS:
        return "no_address"
    if error.startswith(UNWRITTEN):
        return "unwritten"
    reply = _REPLY.match(error)
    match reply.groups() if reply else ("4", "", None, None):
        case ("4", _, _, _):
            return "late"
        case (_, _, "2", "2") | (_, "52", None, _):
            return "full"
        case (_, _, "1", "7" | "8"):
            return "refused"  # the address of the sender
        case (_, _, "1", _) | (_, _, "2", "1") | (_, "50" | "51" | "53", None, _):
            return "unknown"
        case (_, _, "7", _) | (_, "54", None, _):
            return "unwanted"
        case _:
            return "refused"
