"""Answers with receipts: a transaction makes these unsigned, and after its commit all of a batch are signed at once.

So nothing is signed that was not stored. An answer that is stored for its Idempotency-Key has the receipt unsigned. The
receipt is signed again when the answer is repeated, and alone, so that it is the same each time. The file with a
receipt, which its person can have at any time, is made from what is stored in the same way.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, Raw, UnsetType

from holdfast.events.log.keys import cached_signing_key
from holdfast.events.resources import Database
from holdfast.kit.http.handler import NO_STORE, Header, Reply, encode
from holdfast.kit.operations.operation import Completion
from holdfast_verify.formats.receipts import Receipt, ReceiptFile, sign_receipts

MAX_SIGNATURES_AT_A_TIME = 100
"""Signatures after which other work of the process gets its turn: about 4 ms."""


class AnswerWithReceipt(Protocol):
    """An answer that may have a receipt."""

    receipt: Receipt | UnsetType


def signing(kind: Callable[..., AnswerWithReceipt]) -> Completion:
    """A function that signs the receipts of the answers of one kind, a Struct."""

    async def complete(database: Database, answers: Sequence[Any], *, have_keys: bool) -> Sequence[Any]:
        completed_answers = [_with_receipt(kind, answer) if isinstance(answer, Raw) else answer for answer in answers]
        receipts = [
            receipt for answer in completed_answers if (receipt := getattr(answer, "receipt", UNSET)) is not UNSET
        ]
        if receipts:
            await sign(database, [[receipt] for receipt in receipts] if have_keys else [receipts])
        return completed_answers

    return complete


async def sign(database: Database, batches: Sequence[Sequence[Receipt]]) -> None:
    """Sign the receipts of each batch together. Everything they promise is committed already."""
    key, base_url = await cached_signing_key(database), database.resources.settings.base_url
    for number, batch in enumerate(batches, start=1):
        sign_receipts(batch, base_url, key)
        if number % MAX_SIGNATURES_AT_A_TIME == 0:
            await asyncio.sleep(0)


def _with_receipt(kind: Any, stored_answer: Raw) -> Any:
    """A stored answer. It stays as it is if it has no receipt to sign."""
    answer: AnswerWithReceipt = msgspec.json.decode(stored_answer, type=kind)
    return stored_answer if answer.receipt is UNSET else answer


async def receipt_file(database: Database, file: ReceiptFile, name: str) -> Reply:
    """The answer with a receipt that is not signed yet, as a file of this name."""
    await sign(database, [[file.receipt]])
    disposition: Header = (b"content-disposition", f'attachment; filename="{name}"'.encode())
    return Reply(200, encode(file), [NO_STORE, disposition])
