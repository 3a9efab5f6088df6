"""Mailboxes whose owners have stopped our mails, and the links with which they stop and resume them.

Each mail has such a link, so having the link is proof enough. It is signed, and contains a digest of the address.
"""

import datetime as dt
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, ClassVar, Protocol, TypeVar

from holdfast.kit.contract.addresses import mailbox
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.operations.operation import SIGN_IN_LANE, Operation, read, single
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.security.service_secret import HmacSigner, Secret

MAILBOX_PATH = "/mails"

_LINK = re.compile(r"([0-9a-f]{64})-([0-9a-f]{32})")


class Mailbox(Command):
    """Names a mailbox by its digest."""

    mailbox: bytes


class StoppableMail(Protocol):
    """A mail that is to be rendered.

    stop_url        the address of the page that stops all mails to the recipient
    is_requested    whether the recipient asked for it, so that it is sent even if mails are stopped
    """

    recipient: str
    stop_url: str
    is_requested: ClassVar[bool]


ContentT = TypeVar("ContentT", bound=StoppableMail)


async def get(reader: Reader[Any], caller: Caller, command: Mailbox) -> bool:
    """Whether the mails to a mailbox are stopped."""
    return command.mailbox in await _find_stopped(reader, [command.mailbox])


async def stop(tx: Tx[Any], caller: Caller, command: Mailbox) -> None:
    """Send no more mails to a mailbox, except those that its owner asks for."""
    await tx.run(
        "insert into stopped_mails (mailbox) values (%(mailbox)s) on conflict do nothing", {"mailbox": command.mailbox}
    )


async def resume(tx: Tx[Any], caller: Caller, command: Mailbox) -> None:
    """Send mails to a mailbox again."""
    await tx.run("delete from stopped_mails where mailbox = %(mailbox)s", {"mailbox": command.mailbox})


MAILBOX_STATUS = Operation("get_mailbox", None, read(get), lane=SIGN_IN_LANE)
STOP = Operation("stop_mails_to_mailbox", None, single(stop), lane=SIGN_IN_LANE)
RESUME = Operation("resume_mails_to_mailbox", None, single(resume), lane=SIGN_IN_LANE)
OPERATIONS = (MAILBOX_STATUS, STOP, RESUME)
"""The operations, for pages. They have no routes and no tools."""


async def without_stopped(database: Database[Any], contents: Mapping[int, ContentT]) -> dict[int, ContentT]:
    """The mails to send, with their links, without those to mailboxes whose owners have stopped them."""
    digests = {id: digest(content.recipient) for id, content in contents.items()}
    stoppable = [digests[id] for id, content in contents.items() if not content.is_requested]
    stopped = await database.read(lambda reader: _find_stopped(reader, stoppable)) if stoppable else set[bytes]()
    resources = database.resources
    for id, content in contents.items():
        content.stop_url = f"{resources.settings.base_url}{path(resources.secret, digests[id])}"
    return {id: content for id, content in contents.items() if content.is_requested or digests[id] not in stopped}


async def find_stopped_at(reader: Reader[Any], address: str) -> dt.datetime | None:
    """When the mails to an address were stopped; None if they were not."""
    return await reader.value(
        "select stopped_at from stopped_mails where mailbox = %(mailbox)s", {"mailbox": digest(address)}
    )


def digest(address: str) -> bytes:
    """The digest that is stored of an address."""
    return sha256(mailbox(address).encode()).digest()


def path(secret: Secret, digest: bytes) -> str:
    """The path of the page of a mailbox."""
    return f"{MAILBOX_PATH}/{digest.hex()}-{_signer(secret).sign(digest.hex())}"


def read_link(secret: Secret, text: str) -> bytes | None:
    """The digest of the mailbox in a link; None if this service did not write the link."""
    parts = _LINK.fullmatch(text)
    if parts is None or not _signer(secret).accepts(parts[1], parts[2]):
        return None
    return bytes.fromhex(parts[1])


def _signer(secret: Secret) -> HmacSigner:
    return secret.own_signer("mailboxes", 32)


async def _find_stopped(reader: Reader[Any], digests: list[bytes]) -> set[bytes]:
    rows = await reader.tuples(
        "select mailbox from stopped_mails where mailbox = any(%(digests)s)", {"digests": digests}
    )
    return {bytes(stopped) for (stopped,) in rows}
