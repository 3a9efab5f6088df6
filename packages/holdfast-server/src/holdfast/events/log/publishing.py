"""Publishing: the head of the head log is signed, cosigned by witnesses, and shown.

A head is shown when all witnesses have answered, or after two seconds at most. A witness that did not answer in time,
or not rightly, is left out for a while: of what else the service does, nothing waits for a witness. Witnesses are asked
about durable heads only, and outside transactions. So a process that is killed leaves a head that the next one signs.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial

from holdfast.events.log import head_log, sql
from holdfast.events.log.keys import signing_key
from holdfast.events.log.model import HeadLog
from holdfast.events.log.witness_client import WitnessClient, http_client
from holdfast.events.resources import Database, Reader, Tx
from holdfast_verify.formats.signed_note import Checkpoint, Signer
from holdfast_verify.formats.tree import consistency_proof, tiles_for_consistency

PUBLISH_INTERVAL_SECONDS = 0.5
"""Seconds of rest after each look for a head."""


async def run(database: Database) -> None:
    """Publish each new head of the head log, until cancelled."""
    configured = database.resources.settings.log_witness_keys
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(http_client()) if configured else None
        witnesses = [WitnessClient(client, url, verifier) for verifier, url in configured] if client else []
        while True:
            await publish(database, witnesses)
            await asyncio.sleep(PUBLISH_INTERVAL_SECONDS)


async def publish(database: Database, witnesses: Sequence[WitnessClient] = ()) -> None:
    """Publish the heads of head logs that are not shown yet, and get the cosignatures that the newest one lacks."""
    heads = await database.read(head_log.list_head_logs)
    if any(head.signed_size < head.size for head in heads):
        heads = await database.transact(_read_durable)
    for generation_back, head in enumerate(heads):
        is_new = head.signed_size < head.size
        if not is_new and generation_back:
            continue
        note = await database.transact(partial(_sign, head=head)) if is_new else head.checkpoint or ""
        lines = await asyncio.gather(*(witness.cosign(note, partial(_prove, database, head)) for witness in witnesses))
        cosigned = note + "".join(lines)
        if is_new or cosigned != note:
            await database.transact(partial(head_log.store_checkpoint, head=head, checkpoint=cosigned))


async def _read_durable(tx: Tx) -> list[HeadLog]:
    """The heads of head logs. When the transaction has ended, they are as durable as configured."""
    heads = await head_log.list_head_logs(tx)
    await tx.confirm()
    return heads


async def _sign(tx: Tx, head: HeadLog) -> str:
    checkpoint = Checkpoint(head.origin, head.size, head.root)
    return Signer(head.origin, await signing_key(tx)).sign(checkpoint.text)


async def _prove(database: Database, head: HeadLog, old_size: int) -> list[bytes]:
    """The proof that the head begins with its first entries."""

    async def read(reader: Reader) -> list[bytes]:
        tiles = await sql.find_tiles(reader, {head.log_id: tiles_for_consistency(old_size, head.size)})
        return consistency_proof(old_size, head.size, tiles[head.log_id])

    return await database.read(read)
