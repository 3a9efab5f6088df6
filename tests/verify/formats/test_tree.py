"""Trees in tiles: the vectors that everybody uses, and the definition of RFC 6962 for everything else."""

import re
from collections import Counter
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from holdfast_verify.formats.tree import (
    EMPTY_ROOT,
    AppendedTree,
    InvalidProof,
    TileId,
    append,
    bundle,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
    parse_bundle,
    parse_tile_path,
    tile_path,
    tiles_for_append,
    tiles_for_consistency,
    tiles_for_inclusion,
    tiles_for_root,
    tree_root,
    verify_consistency,
    verify_inclusion,
)

REFERENCE_ENTRIES = [
    bytes.fromhex(entry)
    for entry in ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
]
REFERENCE_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
"""The roots of the first 0 to 8 entries, from the tests of certificate-transparency (merkle_tree_test)."""

NODE_0_2 = REFERENCE_ROOTS[2]
NODE_4_6 = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a"
NODE_6_8 = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"
NODE_4_8 = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"
NODE_2_4 = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"
LEAF_1 = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7"
LEAF_4 = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"

LEAVES = [leaf_hash(b"%d" % number) for number in range(1500)]
TREE = append(0, {}, LEAVES)
SIZES = st.integers(1, len(LEAVES))


@cache
def root_by_definition(start: int, stop: int) -> bytes:
    """The Merkle tree hash of some of the leaves, as RFC 6962, section 2.1, defines it."""
    if start == stop:
        return EMPTY_ROOT
    if stop - start == 1:
        return LEAVES[start]
    width = 1
    while width * 2 < stop - start:
        width *= 2
    return node_hash(root_by_definition(start, start + width), root_by_definition(start + width, stop))


def part_of(tiles: list[TileId]) -> dict[TileId, bytes]:
    """Only these tiles of the tree of all leaves."""
    return {tile: TREE.tiles[tile] for tile in tiles}


def altered_content(content: bytes, bit: int) -> bytes:
    position, shift = divmod(bit % (8 * len(content)), 8)
    return content[:position] + bytes([content[position] ^ 1 << shift]) + content[position + 1 :]


def test_the_reference_entries_have_the_reference_roots() -> None:
    leaves = [leaf_hash(entry) for entry in REFERENCE_ENTRIES]

    roots = [append(0, {}, leaves[:size]).root.hex() for size in range(9)]

    assert roots == REFERENCE_ROOTS


def test_the_reference_tree_has_the_reference_proofs() -> None:
    tiles = append(0, {}, [leaf_hash(entry) for entry in REFERENCE_ENTRIES]).tiles

    inclusion = [inclusion_proof(*place, tiles) for place in [(0, 1), (0, 8), (5, 8), (2, 3), (1, 5)]]
    consistency = [consistency_proof(*sizes, tiles) for sizes in [(1, 1), (1, 8), (6, 8), (2, 5)]]

    assert [[hash.hex() for hash in proof] for proof in inclusion] == [
        [],
        [LEAF_1, NODE_2_4, NODE_4_8],
        [LEAF_4, NODE_6_8, REFERENCE_ROOTS[4]],
        [NODE_0_2],
        [REFERENCE_ROOTS[1], NODE_2_4, LEAF_4],
    ]
    assert [[hash.hex() for hash in proof] for proof in consistency] == [
        [],
        [LEAF_1, NODE_2_4, NODE_4_8],
        [NODE_4_6, NODE_6_8, REFERENCE_ROOTS[4]],
        [NODE_2_4, LEAF_4],
    ]


def test_a_tree_of_70_000_leaves_has_the_tiles_of_the_specification() -> None:
    """The example of C2SP, tlog-tiles, "Partial Tiles"."""
    leaves = [leaf_hash(b"%d" % number) for number in range(70_000)]
    tree = append(0, {}, leaves)

    widths = Counter((tile.level, len(content) // 32) for tile, content in tree.tiles.items())
    assert widths == {(0, 256): 273, (0, 112): 1, (1, 256): 1, (1, 17): 1, (2, 1): 1}
    for index in (0, 65_535, 65_536, 69_999):
        verify_inclusion(leaves[index], index, 70_000, tree.root, inclusion_proof(index, 70_000, tree.tiles))
    for old in (255, 256, 257, 65_536):
        old_root = append(0, {}, leaves[:old]).root
        verify_consistency(old, 70_000, old_root, tree.root, consistency_proof(old, 70_000, tree.tiles))


def test_a_full_tile_creates_the_tile_above_it() -> None:
    assert sorted(append(0, {}, LEAVES[:255]).tiles) == [(0, 0)]
    assert sorted(append(0, {}, LEAVES[:256]).tiles) == [(0, 0), (1, 0)]


@settings(max_examples=50)
@given(st.lists(st.one_of(st.integers(0, 5), st.integers(250, 260)), max_size=5))
@example([256, 1])
@example([0, 255, 0, 1, 1])
def test_leaves_appended_in_batches_give_the_tiles_of_one_append(portions: list[int]) -> None:
    tree, tiles = AppendedTree(0, EMPTY_ROOT, {}), dict[TileId, bytes]()
    for part in portions:
        right_edge = {tile: tiles[tile] for tile in tiles_for_append(tree.size)}
        tree = append(tree.size, right_edge, LEAVES[tree.size : tree.size + part])
        tiles |= tree.tiles

    assert tree.root == root_by_definition(0, sum(portions))
    assert tiles == append(0, {}, LEAVES[: tree.size]).tiles


@settings(max_examples=50)
@given(SIZES, st.data())
def test_tiles_of_a_greater_tree_serve_all_smaller_ones(size: int, data: st.DataObject) -> None:
    index, old = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size))

    root = tree_root(size, part_of(tiles_for_root(size)))
    inclusion = inclusion_proof(index, size, part_of(tiles_for_inclusion(index, size)))
    consistency = consistency_proof(old, size, part_of(tiles_for_consistency(old, size)))
    longer = append(size, part_of(tiles_for_append(size)), LEAVES[size : size + 300])

    assert root == root_by_definition(0, size)
    assert longer.root == root_by_definition(0, min(size + 300, len(LEAVES)))
    verify_inclusion(LEAVES[index], index, size, root, inclusion)
    verify_consistency(old, size, root_by_definition(0, old), root, consistency)


def test_all_proofs_of_small_trees_verify() -> None:
    for new in range(20):
        root = root_by_definition(0, new)
        for index in range(new):
            verify_inclusion(LEAVES[index], index, new, root, inclusion_proof(index, new, TREE.tiles))
        for old in range(new + 1):
            verify_consistency(old, new, root_by_definition(0, old), root, consistency_proof(old, new, TREE.tiles))


@settings(max_examples=50)
@given(SIZES, st.integers(0), st.data())
def test_a_proof_of_inclusion_is_refused_with_any_part_altered(size: int, bit: int, data: st.DataObject) -> None:
    index, other, other_size = data.draw(st.integers(0, size - 1)), data.draw(st.integers(-1, size)), data.draw(SIZES)
    assume(other != index and other_size != size)
    leaf, root, proof = LEAVES[index], root_by_definition(0, size), inclusion_proof(index, size, TREE.tiles)
    at = bit % len(proof) if proof else 0
    forgeries: list[tuple[bytes, int, int, bytes, list[bytes]]] = [
        (altered_content(leaf, bit), index, size, root, proof),
        (leaf, other, size, root, proof),
        (leaf, index, other_size, root_by_definition(0, other_size), proof),
        (leaf, index, size, altered_content(root, bit), proof),
        (leaf, index, size, root, [*proof, leaf]),
        *(
            [(leaf, index, size, root, [*proof[:at], altered_content(proof[at], bit), *proof[at + 1 :]])]
            if proof
            else []
        ),
        *([(leaf, index, size, root, [*proof[:at], proof[at][:-1], *proof[at + 1 :]])] if proof else []),
    ]

    for forgery in forgeries:
        with pytest.raises(InvalidProof, match=r"^[A-Z].*\.$"):
            verify_inclusion(*forgery)


@settings(max_examples=50)
@given(SIZES, st.integers(0), st.data())
def test_a_proof_of_consistency_is_refused_with_any_part_altered(new: int, bit: int, data: st.DataObject) -> None:
    old, other, other_new = data.draw(st.integers(1, new)), data.draw(st.integers(-1, new + 1)), data.draw(SIZES)
    assume(other not in {old, 0} and other_new != new)
    old_root, new_root = root_by_definition(0, old), root_by_definition(0, new)
    proof = consistency_proof(old, new, TREE.tiles)
    at = bit % len(proof) if proof else 0
    forgeries: list[tuple[int, int, bytes, bytes, list[bytes]]] = [
        (other, new, old_root, new_root, proof),
        (old, other_new, old_root, root_by_definition(0, other_new), proof),
        (old, new, altered_content(old_root, bit), new_root, proof),
        (old, new, old_root, altered_content(new_root, bit), proof),
        (old, new, old_root, new_root, [*proof, old_root]),
        (0, new, old_root, new_root, []),
        (0, 0, EMPTY_ROOT, new_root, []),
        *(
            [(old, new, old_root, new_root, [*proof[:at], altered_content(proof[at], bit), *proof[at + 1 :]])]
            if proof
            else []
        ),
    ]

    for forgery in forgeries:
        with pytest.raises(InvalidProof, match=r"^[A-Z].*\.$"):
            verify_consistency(*forgery)


def test_too_few_tiles_for_a_tree_are_refused() -> None:
    with pytest.raises(KeyError):
        tree_root(300, {TileId(1, 0): TREE.tiles[TileId(1, 0)]})
    with pytest.raises(ValueError, match=r"Tile 0 of level 0 has 64 bytes; 5 hashes are needed\."):
        append(5, {TileId(0, 0): bytes(64)}, LEAVES[:1])
    with pytest.raises(ValueError, match=r"The hash of a leaf has 32 bytes\."):
        append(0, {}, [b"an entry"])


@pytest.mark.parametrize(
    ("path", "tile"),
    [
        ("tile/0/x001/234.p/5", (0, 1234, 5)),
        ("tile/0/x001/x234/067", (0, 1234067, 256)),
        ("tile/63/000.p/255", (63, 0, 255)),
        ("tile/entries/999", (None, 999, 256)),
        ("tile/entries/x001/000.p/1", (None, 1000, 1)),
    ],
)
def test_paths_of_tiles_are_those_of_the_specification(path: str, tile: tuple[int | None, int, int]) -> None:
    level, number, width = tile

    assert parse_tile_path(path) == tile
    assert tile_path("entries" if level is None else level, number, width) == path


@pytest.mark.parametrize(
    "path",
    """tile/0/1 tile/0/0001 tile/0/x000/001 tile/0/001/234 tile/0/x001/x234 tile/00/001 tile/64/001 tile/-1/001
    tile/data/001 tile/0/001.p/0 tile/0/001.p/05 tile/0/001.p/256 tile/0/001.p/-1 tile/0/001.p/ tile/0/001.p tile/0/001/
    /tile/0/001 tile/0/\u0661\u0661\u0661 tile/0/x001/x001/x001/x001/x001/x001/001 checkpoint""".split(),
)
def test_an_invalid_path_of_a_tile_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=re.escape("The path is not that of a tile, such as tile/0/x001/234.p/5.")):
        parse_tile_path(path)
    with pytest.raises(ValueError, match="not that of a tile"):
        parse_tile_path(f"{path}\n")


@settings(max_examples=50)
@given(st.lists(st.one_of(st.binary(max_size=20), st.integers(0, 65_535).map(bytes)), max_size=5))
def test_a_bundle_is_parsed_to_its_entries_and_refused_when_cut_off(entries: list[bytes]) -> None:
    content = bundle(entries)
    ends = {len(bundle(entries[:count])) for count in range(len(entries) + 1)}

    assert parse_bundle(content) == entries
    for end, next_end in pairwise(sorted(ends)):
        for cut in {end + 1, next_end - 1} - ends:
            with pytest.raises(ValueError, match=r"The bundle of entries is cut off\."):
                parse_bundle(content[:cut])


def test_an_entry_that_is_too_long_for_a_bundle_is_refused() -> None:
    with pytest.raises(ValueError, match=r"An entry of a log has at most 65535 bytes; this one has 65536\."):
        bundle([bytes(65_536)])
