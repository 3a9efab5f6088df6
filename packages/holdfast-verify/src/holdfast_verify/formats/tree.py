"""A Merkle tree (RFC 6962, section 2.1) whose hashes are stored in tiles (C2SP, tlog-tiles).

The leaves of a log are numbered from 0. A part of the tree is the `range` of its leaves: `range(size)` is all of it. A
tile holds up to 256 hashes: at level 0 those of leaves, at each level above those of full tiles of the level below. All
hashes are SHA-256, 32 bytes each.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from hashlib import sha256
from typing import Literal, NamedTuple

EMPTY_ROOT = sha256(b"").digest()
HASH_BYTES = 32
MAX_ENTRY_BYTES = 2**16 - 1
TILE_HEIGHT = 8
TILE_WIDTH = 2**TILE_HEIGHT
TILE_BYTES = TILE_WIDTH * HASH_BYTES

_TILE_PATH = re.compile(r"tile/(entries|[0-9]|[1-5][0-9]|6[0-3])/((?:x[0-9]{3}/){0,5}[0-9]{3})(?:\.p/([0-9]{1,3}))?")


class InvalidProof(ValueError):
    """A proof does not prove what it should. The message is a sentence."""


class TileId(NamedTuple):
    """The place of a tile: its level, 0 for leaves, and its number in the level, from 0."""

    level: int
    number: int


Tiles = Mapping[TileId, bytes]
"""Contents of tiles: concatenated hashes. A tile may be wider than a tree needs; only its beginning is used then."""


class AppendedTree(NamedTuple):
    """The tree after an append.

    size   its number of leaves
    root   its root
    tiles  the tiles that are new or changed, with their whole contents
    """

    size: int
    root: bytes
    tiles: dict[TileId, bytes]


def leaf_hash(entry: bytes) -> bytes:
    """The hash of a leaf, of the entry that it stands for."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node, of the hashes of its two children."""
    return sha256(b"\x01" + left + right).digest()


def tiles_for_append(size: int) -> list[TileId]:
    """The tiles that an append to a tree of this size needs: the partial ones at its right edge."""
    return tiles_for_root(size)


def append(size: int, tiles: Tiles, leaves: Sequence[bytes]) -> AppendedTree:
    """Append leaves (their hashes) to a tree of this size, of which `tiles` holds what `tiles_for_append` names.

    It raises KeyError if a tile is missing, ValueError if one is too narrow or a leaf is not a hash.
    """
    if any(len(leaf) != HASH_BYTES for leaf in leaves):
        raise ValueError(f"The hash of a leaf has {HASH_BYTES} bytes.")
    changed_tiles: dict[TileId, bytes] = {}
    level, start, hashes = 0, size, b"".join(leaves)
    while hashes:
        number, width = divmod(start, TILE_WIDTH)
        if width:
            hashes = _hashes(tiles, TileId(level, number), 0, width) + hashes
        contents = [hashes[at : at + TILE_BYTES] for at in range(0, len(hashes), TILE_BYTES)]
        changed_tiles |= {TileId(level, number + at): content for at, content in enumerate(contents)}
        full = [content for content in contents if len(content) == TILE_BYTES]
        level, start, hashes = level + 1, number, b"".join(map(_perfect_root, full))
    new_size = size + len(leaves)
    return AppendedTree(new_size, tree_root(new_size, {**tiles, **changed_tiles}), changed_tiles)


def tiles_for_root(size: int) -> list[TileId]:
    """The tiles that `tree_root` needs."""
    return _tiles_of([range(size)])


def tree_root(size: int, tiles: Tiles) -> bytes:
    """The root of the tree of the first `size` leaves. It raises KeyError or ValueError as `append` does."""
    return _root(range(size), tiles)


def tiles_for_inclusion(index: int, size: int) -> list[TileId]:
    """The tiles that `inclusion_proof` needs."""
    return _tiles_of(_inclusion_parts(index, size))


def inclusion_proof(index: int, size: int, tiles: Tiles) -> list[bytes]:
    """The proof that a leaf is in the tree of the first `size` leaves: the siblings on its path, from leaf to root.

    It raises KeyError or ValueError as `append` does, and InvalidProof if the tree has no such leaf.
    """
    return [_root(part, tiles) for part in _inclusion_parts(index, size)]


def verify_inclusion(leaf: bytes, index: int, size: int, root: bytes, proof: Sequence[bytes]) -> None:
    """Raise InvalidProof unless the proof shows that the leaf (its hash) is the one at `index` of the tree."""
    parts = _inclusion_parts(index, size)
    _check_shape(proof, len(parts))
    _check_shape([leaf], 1)
    node = leaf
    for part, sibling in zip(parts, proof, strict=True):
        node = node_hash(sibling, node) if part.start <= index else node_hash(node, sibling)
    if node != root:
        raise InvalidProof(f"The proof does not lead from leaf {index} to the root of the tree of {size} leaves.")


def tiles_for_consistency(old: int, new: int) -> list[TileId]:
    """The tiles that `consistency_proof` needs."""
    return _tiles_of(_consistency_parts(old, new))


def consistency_proof(old: int, new: int, tiles: Tiles) -> list[bytes]:
    """The proof that the tree of the first `new` leaves begins with the tree of the first `old` ones.

    It raises KeyError or ValueError as `append` does, and InvalidProof if `old` is greater than `new`.
    """
    return [_root(part, tiles) for part in _consistency_parts(old, new)]


def verify_consistency(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> None:
    """Raise InvalidProof unless the proof shows that the new tree begins with the old one.

    Every tree begins with the empty one, so nothing is proved of a new root if `old` is 0.
    """
    parts = _consistency_parts(old, new)
    _check_shape(proof, len(parts))
    if old == 0:
        _check_root(0, EMPTY_ROOT, old_root)
        if new == 0:
            _check_root(0, EMPTY_ROOT, new_root)
        return
    steps = list(zip(parts, proof, strict=True))
    # The proof begins with a part at the right edge of the old tree, unless that part is the whole old tree.
    old_node = new_node = steps.pop(0)[1] if steps and steps[0][0].stop == old else old_root
    for part, sibling in steps:
        if part.start < old:
            old_node, new_node = node_hash(sibling, old_node), node_hash(sibling, new_node)
        else:
            new_node = node_hash(new_node, sibling)
    _check_root(old, old_node, old_root)
    _check_root(new, new_node, new_root)


def tile_path(level: int | Literal["entries"], number: int, width: int = TILE_WIDTH) -> str:
    """The path of a tile, or of a bundle of entries, below the address of its log, such as `tile/0/x001/234.p/5`."""
    groups = f"{number:,}".split(",")
    path = "/".join([*(f"x{group:0>3}" for group in groups[:-1]), f"{groups[-1]:0>3}"])
    return f"tile/{level}/{path}" + (f".p/{width}" if width < TILE_WIDTH else "")


def parse_tile_path(text: str) -> tuple[int | None, int, int]:
    """The level (None: entries), number and width of such a path. It raises ValueError if the text is no such path."""
    match = _TILE_PATH.fullmatch(text)
    if match:
        level, digits, suffix = match.groups()
        number, width = int(digits.replace("/", "").replace("x", "")), int(suffix or TILE_WIDTH)
        if width and tile_path("entries" if level == "entries" else int(level), number, width) == text:
            return None if level == "entries" else int(level), number, width
    raise ValueError("The path is not that of a tile, such as tile/0/x001/234.p/5.")


def bundle(entries: Iterable[bytes]) -> bytes:
    """A bundle of entries: each with its length before it, in two bytes. It raises ValueError if one is too long."""
    parts: list[bytes] = []
    for entry in entries:
        if len(entry) > MAX_ENTRY_BYTES:
            raise ValueError(f"An entry of a log has at most {MAX_ENTRY_BYTES} bytes; this one has {len(entry)}.")
        parts += [len(entry).to_bytes(2), entry]
    return b"".join(parts)


def parse_bundle(content: bytes) -> list[bytes]:
    """The entries of a bundle. It raises ValueError if the bundle is cut off."""
    entries: list[bytes] = []
    at = 0
    while at < len(content):
        start = at + 2
        at = start + int.from_bytes(content[at:start])
        if start > len(content) or at > len(content):
            raise ValueError("The bundle of entries is cut off.")
        entries.append(content[start:at])
    return entries


def _inclusion_parts(index: int, size: int) -> list[range]:
    """The siblings on the path from a leaf to the root."""
    if not 0 <= index < size:
        raise InvalidProof(f"A tree of {size} leaves has no leaf {index}.")
    part, siblings = range(size), list[range]()
    while part.stop - part.start > 1:
        left, right = _children(part)
        part, sibling = (left, right) if index < left.stop else (right, left)
        siblings.append(sibling)
    return siblings[::-1]


def _consistency_parts(old: int, new: int) -> list[range]:
    """The last part of the old tree that is a node of the new one, unless it is all of it; the siblings on its path."""
    if not 0 <= old <= new:
        raise InvalidProof(f"A tree of {new} leaves does not begin with one of {old}.")
    part, siblings = range(new), list[range]()
    while 0 < old < part.stop:
        left, right = _children(part)
        part, sibling = (left, right) if old <= left.stop else (right, left)
        siblings.append(sibling)
    return [part] * (part.start > 0) + siblings[::-1]


def _children(part: range) -> tuple[range, range]:
    """The two children of a part: the left one has the greatest power of two of leaves that is less than all."""
    middle = part.start + (1 << (part.stop - part.start - 1).bit_length() - 1)
    return range(part.start, middle), range(middle, part.stop)


def _slices(part: range) -> Iterator[tuple[TileId, int, int]]:
    """The perfect subtrees of a part, from left to right: each as a tile, its first hash there, and their number."""
    start = part.start
    while start < part.stop:
        height = (part.stop - start).bit_length() - 1
        level, height_in_tile = divmod(height, TILE_HEIGHT)
        number, first = divmod(start >> TILE_HEIGHT * level, TILE_WIDTH)
        yield TileId(level, number), first, 1 << height_in_tile
        start += 1 << height


def _tiles_of(parts: Iterable[range]) -> list[TileId]:
    return list(dict.fromkeys(tile for part in parts for tile, _, _ in _slices(part)))


def _root(part: range, tiles: Tiles) -> bytes:
    roots = [_perfect_root(_hashes(tiles, tile, first, count)) for tile, first, count in _slices(part)]
    return reduce(lambda right, left: node_hash(left, right), reversed(roots)) if roots else EMPTY_ROOT


@lru_cache(maxsize=256)
def _perfect_root(hashes: bytes) -> bytes:
    """The root of a perfect tree over concatenated hashes, at most a tile of them.

    Cached: a log that grows has the same perfect trees at its left for most of its appends.
    """
    while len(hashes) > HASH_BYTES:
        pairs = (hashes[at : at + 2 * HASH_BYTES] for at in range(0, len(hashes), 2 * HASH_BYTES))
        hashes = b"".join([sha256(b"\x01" + pair).digest() for pair in pairs])
    return hashes


def _hashes(tiles: Tiles, tile: TileId, first: int, count: int) -> bytes:
    content = tiles[tile]
    if len(content) < (first + count) * HASH_BYTES:
        raise ValueError(
            f"Tile {tile.number} of level {tile.level} has {len(content)} bytes; {first + count} hashes are needed."
        )
    return content[first * HASH_BYTES : (first + count) * HASH_BYTES]


def _check_shape(proof: Sequence[bytes], count: int) -> None:
    if len(proof) != count or any(len(hash) != HASH_BYTES for hash in proof):
        raise InvalidProof(f"The proof must have {count} hashes of {HASH_BYTES} bytes.")


def _check_root(size: int, computed: bytes, root: bytes) -> None:
    if computed != root:
        raise InvalidProof(f"The proof does not lead to the root of the tree of {size} leaves.")
