"""The demonstration: what `holdfast up` starts, where its pages are, and the mails that it writes to files."""

import asyncio
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import NamedTuple

from tests.helpers.command_line import run_up
from tests.helpers.data_directories import scratch_directory
from tests.helpers.events_service import eventually

SIGN_IN_LINK = re.compile(r"http://\S+/sign-in/\S+")


class Demonstration(NamedTuple):
    """What `holdfast up` has started.

    links            the addresses to look at in a browser, by name
    shops            the address of the shops of the demonstration
    organizer_key    the key of its organizer
    """

    data_dir: Path
    links: dict[str, str]
    events: str
    inventory: str
    shops: str
    organizer_key: str

    @property
    def mails(self) -> Path:
        return self.data_dir / "mail"


@contextmanager
def run_demonstration(**settings: str) -> Generator[Demonstration]:
    """The demonstration in a directory of its own, as long as the block lasts."""
    data_dir = scratch_directory()
    with run_up(data_dir, "--inventory-port=0", "--events-port=0", **settings) as output:

        def address_of(name: str) -> str:
            [address] = re.findall(rf"^{name} +(http://\S+)$", output, re.MULTILINE)
            return address

        links = re.findall(r"^  (\S.*?)  +(http://\S+)$", output.partition("To look at in a browser")[2], re.MULTILINE)
        [console] = re.findall(r"^Inventory .*?^  console +(http://\S+)$", output, re.MULTILINE | re.DOTALL)
        [key] = re.findall(r"^  organizer key +(\S+)$", output, re.MULTILINE)
        yield Demonstration(
            data_dir,
            {**dict(links), "console": console},
            address_of("Events"),
            address_of("Inventory"),
            address_of("Demo shops"),
            key,
        )


class SentMails:
    """The mails that the services have written to files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[Path, EmailMessage] = {}

    async def find(self, email: str, is_meant: Callable[[EmailMessage], bool] = lambda _: True) -> EmailMessage:
        """The first mail to an address that is meant, once it is sent."""

        async def is_sent() -> bool:
            await asyncio.to_thread(self._read)
            return any(mail["To"] == email and is_meant(mail) for mail in self._known.values())

        await eventually(is_sent, 90)
        return next(mail for mail in self._known.values() if mail["To"] == email and is_meant(mail))

    async def find_sign_in_link(self, email: str) -> str:
        """The link that signs a person in, once it is sent."""
        mail = await self.find(email, lambda mail: bool(SIGN_IN_LINK.search(text_of(mail))))
        return SIGN_IN_LINK.findall(text_of(mail))[0]

    def _read(self) -> None:
        for path in sorted(self._directory.rglob("*.eml"), key=lambda path: path.stat().st_mtime):
            if path not in self._known:
                self._known[path] = message_from_bytes(path.read_bytes(), policy=default)  # pyright: ignore


def text_of(mail: EmailMessage, kind: str = "plain") -> str:
    """The text of a mail, or its HTML."""
    body = mail.get_body((kind,))
    return str(body.get_content()) if body else ""
