"""Receipts: signed promises that a registration or a join will be in the public log.

The promises of one batch are the leaves of a tree (RFC 6962), and one signature covers its root. So a receipt has the
path of its leaf, and a batch of 500 costs little more than one. A receipt is verified with the public key alone.
"""

import datetime as dt
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast_verify.formats.entries import commitment, person_text, timestamp
from holdfast_verify.formats.signed_note import (
    InvalidNote,
    LogName,
    Signer,
    Verifier,
    decode_base64,
    encode_base64,
    open_note,
)
from holdfast_verify.formats.tree import InvalidProof, leaf_hash, node_hash, verify_inclusion

LOGGED_WITHIN_SECONDS = 60
"""Seconds after its arrival within which something is in the log, by the promise of its receipt."""

TITLE = "holdfast promises v1"


class Promise(Struct, forbid_unknown_fields=True):
    """What is promised.

    log       the address of the log
    at        the time of the arrival
    person    the commitment that the log will have
    within    seconds after `at` within which it will be in the log
    ticket    of a queue: the ticket
    """

    log: str
    at: str
    person: str
    within: int
    ticket: int | UnsetType = UNSET


class Receipt(Struct):
    """A signed promise. It is verified with the key under `/log/keys`; docs/events/fairness.md says how."""

    promise: Annotated[str, Meta(description="JSON: log, at, person, within, and the ticket of a queue.")]
    nonce: Annotated[str, Meta(description="What opens the commitment `person`; 32 hexadecimal digits.")]
    index: Annotated[int, Meta(description="The number of the promise among those that were signed together.")] = 0
    path: Annotated[list[str], Meta(description="Hashes from the promise to the root that is signed, in base64.")] = []
    signed: Annotated[str, Meta(description="A signed note (C2SP) with the number of the promises and their root.")] = (
        ""
    )


class PollAddress(Struct):
    """Where to ask for what became of it; the path ends with the id of the person or visitor."""

    url: str


class ReceiptFile(Struct):
    """A receipt that is asked for later. It has the shape of the answer 202, of which programs read it.

    number    the number of the arrival, under which the log can be asked for it
    status    of a registration: what it was when the file was made; its log must lead to the same
    """

    about: str
    receipt: Receipt
    next: PollAddress
    number: int | UnsetType = UNSET
    status: str | UnsetType = UNSET


class InvalidReceipt(ValueError):
    """A receipt is not what it should be. The message is a sentence."""


def receipt_of(
    name: LogName, base_url: str, at: dt.datetime, person: str, nonce: str, ticket: int | None = None
) -> Receipt:
    """The receipt of a person who arrived at an event or a queue; `sign_receipts` signs it.

    person    the public id of an account, or the id of a visitor
    nonce     the nonce of its commitment, as PostgreSQL writes a uuid
    """
    subject, log_member = _log_texts(name, base_url)
    digits = nonce.replace("-", "")
    committed = person_text(commitment(subject, person, bytes.fromhex(digits)))
    # A `Promise`, written by hand: there are thousands a second.
    promise = f'{{{log_member},"at":"{timestamp(at)}","person":"{committed}","within":{LOGGED_WITHIN_SECONDS}'
    promise += "}" if ticket is None else f',"ticket":{ticket}}}'
    return Receipt(promise, digits)


def later_receipt(
    receipt: Receipt,
    subject: str,
    base_url: str,
    poll_path: str,
    number: int | None = None,
    status: str | None = None,
) -> ReceiptFile:
    """A receipt that is asked for later; `subject` is what it is for, such as `event 7`."""
    about = f"The receipt of a place in the order of {subject}. You can check it at {base_url}/verify."
    return ReceiptFile(
        about, receipt, PollAddress(poll_path), UNSET if number is None else number, UNSET if status is None else status
    )


def sign_receipts(receipts: Sequence[Receipt], base_url: str, key: Ed25519PrivateKey) -> None:
    """Sign the receipts of one batch, of one or more."""
    signer = _signer(base_url, key)
    levels = _levels([leaf_hash(receipt.promise.encode()) for receipt in receipts])
    [root] = levels.pop()
    note = signer.sign(f"{TITLE}\n{signer.name}\n{len(receipts)}\n{encode_base64(root)}\n")
    for index, (receipt, path) in enumerate(zip(receipts, _paths(levels), strict=True)):
        receipt.index, receipt.path, receipt.signed = index, path, note


def verify_receipt(receipt: Receipt, vkey: str) -> Promise:
    """The promise of a receipt. Raises `InvalidReceipt` unless it is signed with this key.

    vkey    the key under the name `<host>/log/promises`
    """
    try:
        verifier = Verifier(vkey)
        title, name, count, root = open_note(receipt.signed, [verifier]).removesuffix("\n").split("\n")
        path = [decode_base64(node) for node in receipt.path]
        leaf = leaf_hash(receipt.promise.encode())
        verify_inclusion(leaf, receipt.index, int(count), decode_base64(root), path)
        content = msgspec.json.decode(receipt.promise, type=Promise)
    except InvalidNote as error:
        raise InvalidReceipt(f"The receipt is not signed with the key. {error}") from error
    except InvalidProof as error:
        raise InvalidReceipt(f"The promise is not among those that were signed. {error}") from error
    except ValueError as error:  # msgspec's errors are ValueErrors
        raise InvalidReceipt("The receipt cannot be read.") from error
    host = content.log.partition("://")[2].partition("/log/")[0]
    if title != TITLE or not verifier.name == name == f"{host}/log/promises":
        raise InvalidReceipt("The promise is about a log of another service.")
    return content


def key_name(base_url: str) -> str:
    """The name under which promises are signed."""
    return base_url.partition("://")[2] + "/log/promises"


@lru_cache(maxsize=1_000)
def _log_texts(name: LogName, base_url: str) -> tuple[str, str]:
    """The subject of a log, and the member `log` of the promises about it."""
    return name.subject, f'"log":{msgspec.json.encode(base_url + name.path).decode()}'


@lru_cache(maxsize=16)
def _signer(base_url: str, key: Ed25519PrivateKey) -> Signer:
    return Signer(key_name(base_url), key)


def _levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """The nodes of a tree (RFC 6962), from the leaves to the root. A last node without a sibling moves up unchanged."""
    levels = [list(leaves)]
    while len(levels[-1]) > 1:
        nodes = levels[-1]
        parents = [node_hash(left, right) for left, right in zip(nodes[::2], nodes[1::2], strict=False)]
        levels.append(parents + nodes[len(parents) * 2 :])
    return levels


def _paths(levels: Sequence[Sequence[bytes]]) -> list[list[str]]:
    """The siblings on the way from each leaf to the root, of the levels below the root."""
    paths: list[list[str]] = [[]]
    for nodes in reversed(levels):
        siblings = [encode_base64(node) for node in nodes]
        # The path of a node is its sibling, and the path of its parent.
        lower = [[siblings[index ^ 1], *paths[index >> 1]] for index in range(len(nodes) & ~1)]
        paths = lower + paths[len(lower) // 2 :]
    return paths
