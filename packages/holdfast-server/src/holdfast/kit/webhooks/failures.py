"""Why a message was not delivered, and what to do about it: in English for programs, translated for people."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from holdfast.kit.contract.messages import translatable

FailureReason = Literal["status", "address", "name", "refused", "unreachable", "tls", "timeout", "broken"]
"""Why an attempt failed. `status`: the answer had another status than 200 to 299. The others are reasons of
`FetchRefusal`: there was no answer."""


class FailureText(NamedTuple):
    """What people read about a reason.

    what      what happened, as a sentence
    advice    what they do about it, as sentences
    """

    what: str
    advice: str


FAILURES: Mapping[FailureReason, FailureText] = {
    "status": FailureText(
        translatable("Your program did not take the message."),
        translatable(
            "Look into the log of your program. A message is delivered when the answer has a status from 200 to 299. "
            "Redirects are not followed."
        ),
    ),
    "address": FailureText(
        translatable("Nothing was sent: messages may not go to this address."),
        translatable("Enter an address that begins with https:// and has no port, name or password."),
    ),
    "name": FailureText(
        translatable("Nothing was sent: the name in the address leads to no public address."),
        translatable(
            "Check the spelling, and the entry of the name in the DNS. It must be reachable from the internet."
        ),
    ),
    "refused": FailureText(
        translatable("Your server refused the connection."),
        translatable("Start your program, and check that it listens at this address."),
    ),
    "unreachable": FailureText(
        translatable("Your server could not be reached."),
        translatable("Check that it runs, and that its firewall lets connections from the internet in."),
    ),
    "tls": FailureText(
        translatable("No secure connection (TLS) was possible."),
        translatable("Check that the certificate has not expired, has this name, and is sent with its chain."),
    ),
    "timeout": FailureText(
        translatable("There was no answer in time."),
        translatable("Let your program store the message, answer at once, and do its work afterwards."),
    ),
    "broken": FailureText(
        translatable("The connection broke off before there was an answer."),
        translatable("Look into the log of your program and of the web server in front of it."),
    ),
}


def error_text(reason: FailureReason, detail: str) -> str:
    """The sentences that programs read. `detail`: what exactly happened, as a sentence."""
    return f"{detail} {FAILURES[reason].advice}"
