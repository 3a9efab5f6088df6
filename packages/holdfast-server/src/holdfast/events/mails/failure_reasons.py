"""Why a mail has failed, by the stored error of its last attempt."""

import re
from typing import Literal

from holdfast.kit.contract.addresses import NO_ADDRESS
from holdfast.kit.mail.outbox import RENDER_ERROR_PREFIX

FailureReason = Literal["no_address", "unknown", "full", "unwanted", "late", "refused", "unwritten"]
"""
no_address    the address is not valid for mail
unknown       the mail server does not know the address, or accepts no mail for it
full          the mailbox is full
unwanted      the mail server classifies the mail as spam, or does not trust the sender
late          the mail server has deferred the mail for three days, or was not reachable
refused       the mail server refuses the mail for another reason
unwritten     the mail could not be written
"""

_REPLY = re.compile(r"([245])(\d\d)(?:[ -]+[245]\.(\d{1,3})\.(\d{1,3})\b)?")
"""The answer of a mail server: its reply code (RFC 5321), often with an enhanced status code (RFC 3463)."""


def failure_reason(error: str) -> FailureReason:
    """The reason in the stored error of the last attempt."""
    if error == NO_ADDRESS:
        return "no_address"
    if error.startswith(RENDER_ERROR_PREFIX):
        return "unwritten"
    reply = _REPLY.match(error)
    match reply.groups() if reply else ("4", "", None, None):
        case ("4", _, _, _):
            return "late"
        case (_, _, "2", "2") | (_, "52", None, _):
            return "full"
        case (_, _, "1", "7" | "8"):
            return "refused"  # the address of the sender is wrong
        case (_, _, "1", _) | (_, _, "2", "1") | (_, "50" | "51" | "53", None, _):
            return "unknown"
        case (_, _, "7", _) | (_, "54", None, _):
            return "unwanted"
        case _:
            return "refused"
