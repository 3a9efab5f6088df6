"""Sends the content of a mail byte for byte with aiosmtplib. Written for aiosmtplib 5.1.

`SMTP.data` sends the command DATA and the content in one call. The sender must be able to stop between the two, and it
sends bytes that are already encoded (docs/upstream.md). It stays for safety: a sender checks its right to send after
DATA was accepted, so that a mail is sent once (decision 29).
"""

import re

from aiosmtplib import SMTP
from aiosmtplib.errors import SMTPDataError, SMTPServerDisconnected

VERSION = "5.1"


async def send_content(client: SMTP, content: bytes, seconds: float) -> None:
    """Send the content after the server has accepted DATA. Returns when the server has accepted the mail.

    content    lines that end with CRLF
    seconds    how long the server may take to answer
    """
    protocol = client.protocol
    if protocol is None:
        raise SMTPServerDisconnected("Connection lost")
    protocol.write(re.sub(rb"(?m)^\.", b"..", content) + b".\r\n")
    answer = await protocol.read_response(timeout=seconds)
    if answer.code != 250:
        raise SMTPDataError(answer.code, answer.message)
