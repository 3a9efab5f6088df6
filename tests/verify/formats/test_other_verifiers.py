"""Programs that we did not write verify a log of ours, and refuse each forgery of it."""

from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.staticfiles import StaticFiles

from holdfast_verify.formats.proof_file import ProofFile, parse_proof_file
from holdfast_verify.formats.signed_note import Checkpoint, Signer, Verifier, open_note, parse_checkpoint
from holdfast_verify.formats.tree import (
    EMPTY_ROOT,
    AppendedTree,
    TileId,
    append,
    bundle,
    inclusion_proof,
    leaf_hash,
    parse_bundle,
    parse_tile_path,
    tiles_for_append,
)
from tests.verify.formats.verifiers import (
    LogRefused,
    download,
    files_with_checkpoint,
    replace_files,
    tile_paths,
    verify_with_aics,
    verify_with_go,
    verify_with_sigstore,
)

SIZE = 70_000
OLD_SIZE = 33_333
ORIGIN = "host/log/events/7"
SIGNER = Signer(ORIGIN, Ed25519PrivateKey.from_private_bytes(bytes(32)))
ENTRIES = [b'{"kind":"arrival","number":%d}' % number for number in range(SIZE)]

Verify = Callable[[Path, str], None]
Forgery = Callable[[Path], dict[str, bytes]]
"""What a forger writes into which files of a log."""


def head(tree: AppendedTree) -> bytes:
    return SIGNER.sign(Checkpoint(ORIGIN, tree.size, tree.root).text).encode()


def write_log(directory: Path, sizes: list[int], proofs: list[int]) -> None:
    """Write the files of a log that grew to these sizes, with proofs of the entries that have these indexes.

    The old checkpoint is the last but one.
    """
    tree, tiles = AppendedTree(0, EMPTY_ROOT, {}), dict[TileId, bytes]()
    for size in sizes:
        (directory / "old-checkpoint").write_bytes(head(tree))
        leaves = [leaf_hash(entry) for entry in ENTRIES[tree.size : size]]
        tree = append(tree.size, {tile: tiles[tile] for tile in tiles_for_append(tree.size)}, leaves)
        tiles |= tree.tiles
    (directory / "checkpoint").write_bytes(head(tree))
    for path in tile_paths(tree.size):
        level, number, width = parse_tile_path(path)
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        entries = ENTRIES[number * 256 : number * 256 + width]
        (directory / path).write_bytes(bundle(entries) if level is None else tiles[TileId(level, number)])
    (directory / "proofs").mkdir()
    for index in proofs:
        proof = ProofFile(index, inclusion_proof(index, tree.size, tiles), head(tree).decode(), b"extra")
        (directory / "proofs" / f"{index}").write_text(proof.text, encoding="utf-8")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("log")
    write_log(directory, [1, 300, OLD_SIZE, SIZE], [0, 4210, 65_535, 69_999])
    return directory


def checkpoint(log: Path) -> tuple[str, Checkpoint]:
    note = (log / "checkpoint").read_text(encoding="utf-8")
    return note, parse_checkpoint(open_note(note, [Verifier(SIGNER.vkey)]))


def root_altered(log: Path) -> dict[str, bytes]:
    note, genuine = checkpoint(log)
    return files_with_checkpoint(log, note.replace(genuine.text, genuine._replace(root=bytes(32)).text))


def another_root_signed(log: Path) -> dict[str, bytes]:
    _, genuine = checkpoint(log)
    return files_with_checkpoint(log, SIGNER.sign(genuine._replace(root=bytes(32)).text))


def signature_of_another_key(log: Path) -> dict[str, bytes]:
    _, genuine = checkpoint(log)
    other = Signer(ORIGIN, Ed25519PrivateKey.generate()).sign(genuine.text)
    return files_with_checkpoint(log, other)


def signature_altered(log: Path) -> dict[str, bytes]:
    note, _ = checkpoint(log)
    at = len(note) - 20
    return files_with_checkpoint(log, note[:at] + ("A" if note[at] != "A" else "B") + note[at + 1 :])


def entry_altered(log: Path) -> dict[str, bytes]:
    path = "tile/entries/016"
    return {path: (log / path).read_bytes().replace(b'"number":4210', b'"number":4211')}


def proof_of_another_index(log: Path) -> dict[str, bytes]:
    path = "proofs/4210"
    return {path: parse_proof_file((log / path).read_text("utf-8"))._replace(index=4211).text.encode()}


def path_of_another_leaf(log: Path) -> dict[str, bytes]:
    path, other = "proofs/4210", parse_proof_file((log / "proofs/0").read_text("utf-8"))
    return {path: other._replace(index=4210).text.encode()}


def tile_altered(log: Path) -> dict[str, bytes]:
    path = "tile/0/100"
    return {path: bytes(32) + (log / path).read_bytes()[32:]}


def entry_and_its_hash_altered(log: Path) -> dict[str, bytes]:
    altered = entry_altered(log)
    entries = parse_bundle(altered["tile/entries/016"])
    return {**altered, "tile/0/016": b"".join(leaf_hash(entry) for entry in entries)}


def history_rewritten(_: Path) -> dict[str, bytes]:
    return {"old-checkpoint": SIGNER.sign(Checkpoint(ORIGIN, OLD_SIZE, bytes(32)).text).encode()}


OF_PROOFS: list[Forgery] = [
    root_altered,
    another_root_signed,
    signature_of_another_key,
    signature_altered,
    entry_altered,
    proof_of_another_index,
    path_of_another_leaf,
]
OF_LOGS: list[Forgery] = [*OF_PROOFS, tile_altered, entry_and_its_hash_altered, history_rewritten]


@pytest.mark.parametrize(
    ("verify", "forgeries"),
    [(verify_with_go, OF_LOGS), (verify_with_aics, OF_LOGS), (verify_with_sigstore, OF_PROOFS)],
)
def test_a_foreign_verifier_accepts_a_log_and_refuses_its_forgeries(
    log: Path, verify: Verify, forgeries: list[Forgery]
) -> None:
    verify(log, SIGNER.vkey)

    for forgery in forgeries:
        with replace_files(log, forgery(log)), pytest.raises(LogRefused, match=r"^refused: "):
            verify(log, SIGNER.vkey)


def files(directory: Path) -> dict[str, bytes]:
    return {f"{path.relative_to(directory)}": path.read_bytes() for path in directory.rglob("*") if path.is_file()}


async def test_the_files_of_a_log_are_fetched_from_its_address(tmp_path: Path) -> None:
    """Tests of the running service use it: here, static files are as good as a service."""
    log, copy = tmp_path / "log", tmp_path / "copy"
    log.mkdir()
    copy.mkdir()
    write_log(log, [300, 700], [5, 699])
    genuine = files(log)
    (copy / "checkpoint").write_bytes(genuine["old-checkpoint"])

    transport = httpx2.ASGITransport(app=StaticFiles(directory=log))
    async with httpx2.AsyncClient(transport=transport, base_url="http://log.example") as client:
        await download(client, copy, ["5", "699"])

    assert files(copy) == genuine
    assert {"tile/0/002.p/188", "tile/1/000.p/2", "tile/entries/000"} < genuine.keys()
