"""A log, rows that are to be sealed into it, and a reader who has only its public addresses."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg
from psycopg.types.json import Jsonb

from holdfast.events.log import generations, head_log, sealing
from holdfast.events.log.head_log import WitnessClient
from holdfast_verify.formats.proof_file import ProofFile, parse_proof_file
from holdfast_verify.formats.signed_note import Checkpoint, Verifier, open_note, parse_checkpoint
from holdfast_verify.formats.tree import HASH_BYTES, append, leaf_hash, parse_bundle, tile_path, verify_inclusion
from tests.helpers.events_service import Service
from tests.helpers.sealing import seal_once
from tests.verify.formats.verifiers import tile_paths

START = datetime(2026, 11, 26, 13, 0, 0, 123_456, UTC)
OPEN = {"of": "event", "capacity": 100, "waiting_places": 10, "seated": 0, "waiting": 0, "first_number": 1}
HOST = "events.test"


async def open_log(service: Service, *, seal: bool = False) -> "LogScene":
    """The log of a new event, with its first row pending, or sealed and signed."""
    event = await (await service.organizer()).create_event(capacity=OPEN["capacity"])
    scene = await begin_log(service, "events", event["id"])
    await scene.pend("open", OPEN)
    if seal:
        await scene.seal()
    return scene


async def begin_log(service: Service, noun: str, id: int) -> "LogScene":
    """A log that has nothing yet."""
    column = f"{noun[:-1]}_id"
    await service.run_sql(f"delete from logs where {column} = %(id)s", id=id)
    [(log_id,)] = await service.run_sql(f"insert into logs ({column}) values (%(id)s) returning id", id=id)
    return LogScene(service, log_id, f"/log/{noun}/{id}")


async def seal_logs(service: Service, *, witnesses: Sequence[WitnessClient] = (), **options: Any) -> None:
    """Seal all that is pending, sign it, and seal and publish the heads in the head log."""
    for _ in range(2):
        while await seal_once(service.database, **options):
            pass
        await sealing.sign(service.database)
    await head_log.publish(service.database, witnesses)


@dataclass
class LogScene:
    """A log, and what its reader has seen of it.

    path        the path of its addresses
    arrivals    how many arrivals were written
    heads       the heads that were read, in order
    """

    service: Service
    log_id: int
    path: str
    arrivals: int = 0
    heads: list[Checkpoint] = field(default_factory=list[Checkpoint])

    @property
    def origin(self) -> str:
        return HOST + self.path

    async def pend(self, kind: str, details: dict[str, Any]) -> None:
        """Write a row that is one entry."""
        await self.service.run_sql(
            "insert into log_pending (log_id, kind, at, details) values (%(log_id)s, %(kind)s, %(at)s, %(details)s)",
            log_id=self.log_id,
            kind=kind,
            at=START,
            details=Jsonb(details),
        )

    async def arrive(self, count: int, *, user_id: int = 1, cut: datetime | None = None) -> None:
        """Write a row with this many arrivals of an event, a second apart."""
        first = self.arrivals + 1
        self.arrivals += count
        await self.service.run_sql(
            """
            insert into log_pending (log_id, kind, first_number, received_at, user_ids, nonces, outcomes, cut)
            select %(log_id)s, 'arrivals', %(first)s, array_agg(%(start)s + g * interval '1 second' order by g),
                   array_agg(%(user_id)s::bigint), array_agg(lpad(to_hex(g), 32, '0')::uuid order by g),
                   array_agg('registered'::registration_status), %(cut)s
              from generate_series(%(first)s::bigint, %(last)s) as g
            """,
            log_id=self.log_id,
            first=first,
            last=self.arrivals,
            start=START - timedelta(seconds=1),
            user_id=user_id,
            cut=cut,
        )

    async def seal(self, **options: Any) -> None:
        await seal_logs(self.service, **options)

    async def get(self, path: str) -> httpx2.Response:
        """The public answer of an address of the log."""
        return await self.service.http.get(f"{self.path}{path}")

    async def content(self, path: str) -> bytes:
        answer = await self.get(path)
        assert answer.status_code == 200, (path, answer.text)
        return answer.content

    async def read(self) -> list[dict[str, Any]]:
        """All entries, as JSON has them. It verifies them as `read_entries` does."""
        return [json.loads(entry) for entry in await self.read_entries()]

    async def read_entries(self) -> list[bytes]:
        """All entries. It verifies the signed head, that all leads to it, and that it continues the last one."""
        head = await self.read_head()
        files = {path: await self.content(f"/{path}") for path in tile_paths(head.size)}
        bundles = [files.pop(path) for path in [*files] if path.startswith("tile/entries/")]
        entries = [entry for bundle in bundles for entry in parse_bundle(bundle)]
        leaves = [leaf_hash(entry) for entry in entries]
        tiles = append(0, {}, leaves).tiles
        assert files == {tile_path(*tile, len(hashes) // HASH_BYTES): hashes for tile, hashes in tiles.items()}
        for known in (*self.heads, head):
            assert append(0, {}, leaves[: known.size]).root == known.root
        self.heads.append(head)
        return entries

    async def read_head(self) -> Checkpoint:
        verifier = Verifier((await self.content("/key")).decode().removesuffix("\n"))
        head = parse_checkpoint(open_note((await self.content("/checkpoint")).decode(), [verifier]))
        assert head.origin == verifier.name
        return head


async def read_verified_entry(log: LogScene, path: str) -> bytes:
    """The entry of a proof file, verified with the key of the log."""
    proof = parse_proof_file((await log.content(path)).decode())
    verifier = Verifier((await log.content("/key")).decode().strip())
    head = parse_checkpoint(open_note(proof.checkpoint, [verifier]))
    assert proof.extra is not None
    verify_inclusion(leaf_hash(proof.extra), proof.index, head.size, head.root, proof.hashes)
    return proof.extra


class HeadLogScene(LogScene):
    """The head log, as its readers see it: its entries are checkpoints."""

    async def read_checkpoints(self) -> Sequence[Checkpoint]:
        return [parse_checkpoint(entry.decode()) for entry in await self.read_entries()]

    async def read_proof(self, log: LogScene) -> tuple[Checkpoint, ProofFile]:
        """The head of a log that the head log has; it is verified."""
        proof = parse_proof_file((await log.content("/head-proof")).decode())
        head = parse_checkpoint(open_note(proof.checkpoint, [Verifier((await self.content("/key")).decode().strip())]))
        entry = proof.extra or b""
        verify_inclusion(leaf_hash(entry), proof.index, head.size, head.root, proof.hashes)
        return parse_checkpoint(entry.decode()), proof


def head_log_scene(service: Service, path: str = "/log/heads") -> HeadLogScene:
    return HeadLogScene(service, 0, path)


def begin_log_generations(service: Service) -> None:
    """What `holdfast restore` does at its end."""
    with psycopg.connect(service.database.url, autocommit=True) as connection:
        generations.begin_generations(connection)
