"""A public log as its readers have it: downloaded from its addresses, replayed, and nothing else."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.kit.security.http_client import HttpClient
from holdfast_verify.formats.signed_note import Checkpoint, Verifier, open_note, parse_checkpoint
from holdfast_verify.formats.tree import TileId, append, leaf_hash, parse_bundle, parse_tile_path, tiles_for_append
from tests.verify.formats.verifiers import download, tile_paths

Entry = dict[str, Any]


@dataclass
class PublishedLog:
    """The entries of a log, by what they tell.

    removals     those of people who had no number yet, by commitment
    places       the indexes of the entries with a commitment
    statuses     what each number has in the end
    sealed_at    the time of the seal behind each entry, by the index of the entry
    """

    directory: Path
    vkey: str
    texts: list[bytes]
    entries: list[Entry] = field(default_factory=list[Entry])
    removals: dict[str, Entry] = field(default_factory=dict[str, Entry])
    places: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict[str, list[int]](list))
    statuses: dict[int, str] = field(default_factory=dict[int, str])
    sealed_at: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        for text in self.texts:
            self._replay(json.loads(text))

    def _replay(self, entry: Entry) -> None:
        if "person" in entry:
            self.places[entry["person"]].append(len(self.entries))
        self.entries.append(entry)
        match entry["kind"]:
            case "arrival":
                self.statuses[entry["number"]] = entry.get("outcome", "joined")
            case "change" if "person" in entry:
                self.removals[entry["person"]] = entry
            case "change" if "number" in entry:
                self.statuses[entry["number"]] = entry["to"]
            case "seal":
                self.sealed_at += [entry["at"]] * (len(self.entries) - len(self.sealed_at))
            case _:
                pass

    def open_head(self, note: str) -> Checkpoint:
        """A head that was signed with the key of the log."""
        return parse_checkpoint(open_note(note, [Verifier(self.vkey)]))

    def roots(self, sizes: Sequence[int]) -> dict[int, bytes]:
        """The root that the log had at each of these sizes, if it has only grown."""
        roots, size, tiles = dict[int, bytes](), 0, dict[TileId, bytes]()
        for larger in sorted({*sizes}):
            leaves = [leaf_hash(text) for text in self.texts[size:larger]]
            appended = append(size, {tile: tiles[tile] for tile in tiles_for_append(size)}, leaves)
            size, tiles = appended.size, tiles | appended.tiles
            roots[larger] = appended.root
        return roots

    def contains(self, path: str, content: bytes) -> bool:
        """Whether a bundle of entries, or a tile of their hashes, is what the log has there."""
        level, number, width = parse_tile_path(path)
        texts = self.texts[number * 256 : number * 256 + width]
        if level is None:
            return parse_bundle(content) == texts
        return level > 0 or content == b"".join(map(leaf_hash, texts))


async def read_log(url: str, directory: Path, proofs: Sequence[int] = ()) -> PublishedLog:
    """Download a log from its address into a directory that is there, with the proofs of some numbers."""
    async with HttpClient(base_url=url, timeout=30) as client:
        await download(client, directory, map(str, proofs))
        vkey = (await client.get("key")).text.strip()
    size = int((directory / "checkpoint").read_text("utf-8").split("\n")[1])
    texts = [
        text
        for path in tile_paths(size)
        if path.startswith("tile/entries/")
        for text in parse_bundle((directory / path).read_bytes())
    ]
    return PublishedLog(directory, vkey, texts)
