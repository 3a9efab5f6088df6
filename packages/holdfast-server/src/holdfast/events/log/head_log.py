"""The head log: the log of the service whose entries are the signed heads of all other logs, and its publication.

An entry is the text of a checkpoint: origin, size and root, a line each. Each signed head is an entry, once; those of
one log are in order. The statement that stores a signed head writes the entry to `log_pending`
(`sql.store_checkpoints`), and sealing turns it into a leaf like any other.

The head of the head log is signed, and cosigned by witnesses (C2SP, tlog-witness). It is published when all of them
have answered, or after two seconds at most; without witnesses, with the heads of the other logs (`sealing.py`). A
witness that did not answer in time, or not rightly, is left out for a while; nothing else of the service waits for a
witness. Witnesses are asked about durable heads only, and outside transactions. So a process that is killed leaves a
head that the next one signs.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from itertools import islice
from typing import LiteralString

import httpx2
import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from prometheus_client import Counter

from holdfast.events.log import sql
from holdfast.events.log.keys import signing_key
from holdfast.events.log.model import HeadLog, ListedHead, UnsignedHead
from holdfast.events.resources import Database, Reader, Tx
from holdfast.kit.background.loops import Loop, LoopStep, RowWaiters
from holdfast.kit.security.http_client import HttpClient, trusted_certificates
from holdfast_verify.formats.cosignature import (
    ADD_CHECKPOINT_PATH,
    SIZE_MEDIA_TYPE,
    AddCheckpoint,
    CosignatureVerifier,
    find_cosignature,
)
from holdfast_verify.formats.proof_file import ProofFile
from holdfast_verify.formats.signed_note import Checkpoint, InvalidNote, Signer, parse_checkpoint, parse_note
from holdfast_verify.formats.tree import (
    TILE_WIDTH,
    consistency_proof,
    inclusion_proof,
    parse_bundle,
    tiles_for_consistency,
    tiles_for_inclusion,
)

log = structlog.get_logger()

IS_HEAD_LOG: LiteralString = "event_id is null and queue_id is null"
"""Whether a row of `logs` is the head log."""


async def find_head_log(tx: Tx) -> int:
    """The id of the newest generation of the head log. It is made when it is first needed."""
    find: LiteralString = f"select id from logs where {IS_HEAD_LOG} order by generation desc limit 1"
    id = await tx.value(find)
    if id is None:
        await tx.run("insert into logs default values on conflict do nothing")
        id = await tx.value(find)
    return id


async def list_head_logs(reader: Reader) -> list[HeadLog]:
    """The head logs of which something is sealed, newest generation first."""
    rows = await reader.tuples(
        f"""
        select log_id, origin, size, root, signed_size, checkpoint
          from logs join log_heads on log_id = logs.id where {IS_HEAD_LOG} order by generation desc
        """
    )
    return [HeadLog(*row) for row in rows]


async def store_checkpoint(tx: Tx, head: HeadLog, checkpoint: str, indexes: Mapping[str, int] | None = None) -> None:
    """Store the signed head of a head log, and the places of the heads of other logs in it.

    Nothing is stored if another one, or one with other cosignatures, was stored since `head` was read.

    indexes    of the entries that are not signed yet, by origin, as `indexes_of` has them; None: they are read
    """
    if indexes is None:
        indexes = await _find_indexes(tx, head) if head.signed_size < head.size else {}
    await tx.run(
        """
        with log_index as (
            select %(log_id)s::bigint as log_id, null::bigint as index
             union all
            select log.log_id, index
              from unnest(%(origins)s::text[], %(indexes)s::bigint[]) as listed_log (origin, index)
             cross join lateral (select log_id from log_heads where origin = listed_log.origin limit 1) as log),
        -- In order of their ids, as sealing locks them.
        locked_head as materialized (
            select head.*, index
              from (select * from log_index order by log_id) as log_index
             cross join lateral (
                select log_id, signed_size, checkpoint from log_heads
                 where log_id = log_index.log_id limit 1 for no key update) as head),
        is_newest as (
            select from locked_head
             where log_id = %(log_id)s and (signed_size < %(size)s or checkpoint = %(read_checkpoint)s)),
        listed_head as (
            update log_heads set listed_in = %(log_id)s, listed_index = index
              from locked_head
             where log_heads.log_id = locked_head.log_id and index is not null and exists (select from is_newest))
        update log_heads set signed_size = %(size)s, checkpoint = %(checkpoint)s
         where log_id = %(log_id)s and exists (select from is_newest)
        """,
        {
            "log_id": head.log_id,
            "size": head.size,
            "checkpoint": checkpoint,
            "read_checkpoint": head.checkpoint,
            "origins": [*indexes],
            "indexes": [*indexes.values()],
        },
    )


async def find_listed_head(reader: Reader, log_id: int) -> ListedHead | None:
    """The last head of a log that the signed head log has; None: it has none yet."""
    rows = await reader.tuples(
        """
        select head_log.log_id, log_heads.listed_index, head_log.signed_size, head_log.checkpoint
          from log_heads join log_heads as head_log on head_log.log_id = log_heads.listed_in
         where log_heads.log_id = %(log_id)s
        """,
        {"log_id": log_id},
    )
    return ListedHead(*rows[0]) if rows else None


async def prove(reader: Reader, listing: ListedHead) -> ProofFile:
    """The proof that a head is in the head log; its `extra` is the entry."""
    number, offset = divmod(listing.entry, TILE_WIDTH)
    entry = parse_bundle(await sql.find_bundle(reader, listing.log_id, number))[offset]
    tiles = await sql.find_tiles(reader, {listing.log_id: tiles_for_inclusion(listing.entry, listing.size)})
    proof = inclusion_proof(listing.entry, listing.size, tiles[listing.log_id])
    return ProofFile(listing.entry, proof, listing.checkpoint, entry)


async def _find_indexes(tx: Tx, head: HeadLog) -> dict[str, int]:
    """The indexes of the entries that are not signed yet, by the origin in them; of each origin the last one."""
    first = head.signed_size // TILE_WIDTH
    rows: Sequence[tuple[int, bytes]] = await tx.tuples(
        """
        select number, entries from log_entries
         where log_id = %(log_id)s and number between %(first)s and %(last)s order by number
        """,
        {"log_id": head.log_id, "first": first, "last": (head.size - 1) // TILE_WIDTH},
    )
    entries = (entry for _, content in rows for entry in parse_bundle(content))
    return indexes_of(islice(entries, head.size - first * TILE_WIDTH), first * TILE_WIDTH)


def indexes_of(entries: Iterable[bytes], first: int) -> dict[str, int]:
    """The indexes of entries of the head log, by the origin in them; of each origin the last one.

    first    the index of the first entry
    """
    return {entry.partition(b"\n")[0].decode(): index for index, entry in enumerate(entries, start=first)}


TIMEOUT_SECONDS = 2.0
"""Seconds within which a witness answers, with both requests together if it is asked twice."""

MAX_PAUSE_SECONDS = 60.0
"""The most seconds for which a witness is left out that did not answer rightly. Each failure doubles them, from 1."""

MAX_ANSWER_BYTES = 65_536

Prove = Callable[[int], Awaitable[list[bytes]]]
"""Makes the proof that the checkpoint begins with this many entries."""

FAILURES = Counter("holdfast_log_witness_failures", "Requests that a witness has not cosigned.", ["witness"])


class WitnessFailure(Exception):
    """A witness did not give its cosignature. The message says why, as the end of a sentence about it."""


def http_client() -> httpx2.AsyncClient:
    """A client for the requests to all witnesses. It keeps connections."""
    return HttpClient(timeout=TIMEOUT_SECONDS, verify=trusted_certificates(), trust_env=False)


class WitnessClient:
    """A witness, and what this process knows of it."""

    def __init__(self, client: httpx2.AsyncClient, url: str, verifier: CosignatureVerifier) -> None:
        self._client = client
        self._url = f"{url}{ADD_CHECKPOINT_PATH}"
        self._verifier = verifier
        self._sizes: dict[str, int] = {}
        self._failure_count = 0
        self._due_at = 0.0

    async def cosign(self, note: str, prove: Prove) -> str:
        """The line with the cosignature of a checkpoint.

        Empty: the checkpoint has it already, or the witness does not give it, or it is left out for now.
        """
        signers = {(name, key_id) for name, key_id, _ in parse_note(note).signatures}
        if (self._verifier.name, self._verifier.key_id) in signers or time.monotonic() < self._due_at:
            return ""
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                line = await self._ask(note, prove)
        except TimeoutError:
            self._fail(f"did not answer within {TIMEOUT_SECONDS:.0f} seconds")
        except httpx2.HTTPError as error:
            self._fail(f"cannot be reached: {str(error).strip() or type(error).__name__}")
        except WitnessFailure as error:
            self._fail(str(error))
        else:
            self._failure_count = 0
            return line
        return ""

    async def _ask(self, note: str, prove: Prove) -> str:
        head = parse_checkpoint(parse_note(note).text)
        old_size = min(self._sizes.get(head.origin, 0), head.size)
        status, media_type, answer = await self._post(note, old_size, prove)
        if status == 409 and media_type == SIZE_MEDIA_TYPE:
            old_size = _size(answer)
            if old_size > head.size:
                raise WitnessFailure(
                    f"has cosigned {old_size:,} entries of {head.origin}, which has {head.size:,} here: the database "
                    "was restored without `holdfast restore`, or another service signs with its key"
                )
            status, _, answer = await self._post(note, old_size, prove)
        if status != 200:
            raise WitnessFailure(f"answers {status}: {answer.strip()[:200]}")
        try:
            cosignature = find_cosignature(note + answer, self._verifier)
        except InvalidNote as error:
            raise WitnessFailure(f"answers with a false cosignature: {error}") from error
        if cosignature is None:
            raise WitnessFailure("answers without a cosignature of its key")
        self._sizes[head.origin] = head.size
        return cosignature.line

    async def _post(self, note: str, old_size: int, prove: Prove) -> tuple[int, str, str]:
        """The status, media type and text of the answer."""
        body = AddCheckpoint(old_size, await prove(old_size), note).body
        async with self._client.stream("POST", self._url, content=body) as response:
            content = bytearray()
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > MAX_ANSWER_BYTES:
                    raise WitnessFailure(f"answers with more than {MAX_ANSWER_BYTES:,} bytes")
            return response.status_code, response.headers.get("content-type", ""), content.decode(errors="replace")

    def _fail(self, reason: str) -> None:
        FAILURES.labels(self._verifier.name).inc()
        if not self._failure_count:
            log.warning("a witness has not cosigned the head log", witness=self._verifier.name, reason=reason)
        self._due_at = time.monotonic() + min(2.0**self._failure_count, MAX_PAUSE_SECONDS)
        self._failure_count = min(self._failure_count + 1, 10)


def _size(answer: str) -> int:
    text = answer.removesuffix("\n")
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise WitnessFailure("answers 409 without a size")
    return int(text)


PUBLISH_INTERVAL_SECONDS = 0.5
"""Seconds of rest after each look for a head."""


@asynccontextmanager
async def open_publishing(database: Database) -> AsyncGenerator[LoopStep]:
    """Open a client for the witnesses, if there are any. The step publishes the new heads of the head log.

    Without witnesses there is nothing to wait for: sealing publishes them itself.
    """
    witness_keys = database.resources.settings.log_witness_keys
    async with http_client() if witness_keys else nullcontext() as client:
        witnesses = [WitnessClient(client, url, verifier) for verifier, url in witness_keys] if client else []

        async def publish_new(database: Database, _: RowWaiters) -> float:
            if witnesses:
                await publish(database, witnesses)
            return PUBLISH_INTERVAL_SECONDS

        yield publish_new


LOOP = Loop("head_log.run", open_step=open_publishing)


async def publish(database: Database, witnesses: Sequence[WitnessClient] = ()) -> None:
    """Publish the heads of head logs that are not shown yet, and get the cosignatures that the newest one lacks."""
    heads, key = await database.read(list_head_logs), None
    if any(head.signed_size < head.size for head in heads):
        heads, key = await database.transact(_read_durable)
    for generation_back, head in enumerate(heads):
        is_new = head.signed_size < head.size
        if not is_new and generation_back:
            continue
        note = sign(head, key) if is_new and key else head.checkpoint or ""
        lines = await asyncio.gather(
            *(witness.cosign(note, partial(_prove_consistency, database, head)) for witness in witnesses)
        )
        cosigned_note = note + "".join(lines)
        if is_new or cosigned_note != note:
            await database.transact(partial(store_checkpoint, head=head, checkpoint=cosigned_note))


async def _read_durable(tx: Tx) -> tuple[list[HeadLog], Ed25519PrivateKey]:
    """Heads of head logs, and the key that signs. Both are as durable as configured when the transaction has ended."""
    heads, key = await list_head_logs(tx), await signing_key(tx)
    await tx.wait_for_earlier_commits()
    return heads, key


def sign(head: HeadLog | UnsignedHead, key: Ed25519PrivateKey) -> str:
    """The checkpoint of a head."""
    return Signer(head.origin, key).sign(Checkpoint(head.origin, head.size, head.root).text)


async def _prove_consistency(database: Database, head: HeadLog, old_size: int) -> list[bytes]:
    """The proof that the head begins with its first entries."""

    async def read(reader: Reader) -> list[bytes]:
        tiles = await sql.find_tiles(reader, {head.log_id: tiles_for_consistency(old_size, head.size)})
        return consistency_proof(old_size, head.size, tiles[head.log_id])

    return await database.read(read)
