"""Mails in files, as a service without a mail server writes them."""

import datetime as dt
import os
from pathlib import Path

from holdfast.kit.mail.message import Attachment, MailMessage

HTML = (
    '<html lang="en"><head><title>Mail</title><style>\np { color: #222; }\n</style></head><body><main>'
    '<h1>Hello</h1><p>A seat is yours.</p><img src="cid:code" alt="Code"></main></body></html>'
)
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


TEXT = f"Hello as text {'w' * 300}"


def write(directory: Path, id: str, subject: str = "You have a seat", *, text: str = TEXT, age: int = 0) -> None:
    """Write a mail. `age`: seconds by which it is older than others."""
    directory.mkdir(exist_ok=True)
    date = dt.datetime(2026, 11, 25, tzinfo=dt.UTC)
    picture = Attachment(PIXEL, "image/png", "code.png", cid="code")
    mail = MailMessage("ann@example.com", subject, text, HTML, f"{id}@localhost", date, (picture,))
    file = directory / f"{id}.eml"
    file.write_bytes(mail.encoded("holdfast@localhost"))
    os.utime(file, (1_700_000_000 - age, 1_700_000_000 - age))
