"""Why a URL could not be fetched or posted to: in words, and in one word that programs compare."""

import ssl
from collections.abc import Generator
from typing import Literal

from holdfast.kit.contract.messages import message

RefusalReason = Literal["address", "name", "refused", "unreachable", "tls", "timeout", "broken", "content"]
"""Why there is no answer.

address        the URL may not be used, so nothing was looked up or sent
name           the host has no public address
refused        the server refused the connection
unreachable    no connection was made in time
tls            the connection is not secure: the certificate is not trusted, or the server does not speak TLS
timeout        the answer took too long
broken         the connection broke off, or the answer is not HTTP
content        there was an answer, but it is not what was asked for
"""

NOT_PUBLIC = message("names a host that has no public address")
"""Also the message for unknown names, so that users do not learn which names the operator's own network has."""

CONNECT_TIMEOUT_SECONDS = 3
"""Seconds that the connection to one of several addresses may take."""


class FetchRefusal(Exception):
    """The content of a URL cannot be fetched. The message says why, as the end of a sentence about the URL."""

    def __init__(self, text: str, reason: RefusalReason) -> None:
        super().__init__(text)
        self.reason: RefusalReason = reason


def not_public() -> FetchRefusal:
    """The refusal of a host that has no public address."""
    return FetchRefusal(NOT_PUBLIC, "name")


def too_slow(seconds: float) -> FetchRefusal:
    """The refusal of an answer that took longer than a number of seconds."""
    return FetchRefusal(message("took longer than %(seconds)s seconds", seconds=f"{seconds:g}"), "timeout")


def broken_off() -> FetchRefusal:
    """The refusal of an answer that ended early, or that is not HTTP."""
    return FetchRefusal(message("broke off, or is not answered as HTTP has it"), "broken")


def not_connected(error: Exception | None) -> FetchRefusal:
    """The refusal after the last attempt to connect failed with an error."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = cause.verify_message.rstrip(".")
            return FetchRefusal(message("has a certificate that is not trusted (%(why)s)", why=why), "tls")
        if isinstance(cause, ssl.SSLError):
            return FetchRefusal(message("is not answered with TLS"), "tls")
        if isinstance(cause, ConnectionRefusedError):
            return FetchRefusal(message("refuses connections"), "refused")
    seconds = f"{CONNECT_TIMEOUT_SECONDS}"
    return FetchRefusal(message("cannot be reached within %(seconds)s seconds", seconds=seconds), "unreachable")


def _causes(error: BaseException | None) -> Generator[BaseException]:
    """An error, and the errors that it was raised for."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
