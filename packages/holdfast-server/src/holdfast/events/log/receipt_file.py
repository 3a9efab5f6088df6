"""The file with a receipt, which its person can have at any time: it is signed again from what is stored."""

from holdfast.events.log.signed_answers import sign
from holdfast.events.resources import Database
from holdfast.kit.http.handler import NO_STORE, Header, Reply, encode
from holdfast_verify.formats.receipts import ReceiptFile


async def receipt_file(database: Database, file: ReceiptFile, name: str) -> Reply:
    """The answer with a receipt that is not signed yet, as a file of this name."""
    await sign(database, [[file.receipt]])
    disposition: Header = (b"content-disposition", f'attachment; filename="{name}"'.encode())
    return Reply(200, encode(file), [NO_STORE, disposition])
