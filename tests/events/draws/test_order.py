"""The order of a draw: it follows from its seed, here and in a browser alike."""

import json
from base64 import b64encode
from collections import Counter
from pathlib import Path

from holdfast_verify.formats import beacon
from holdfast_verify.formats.drawn_order import DRAWN_ORDER, Freeze, draw_order, hash_of_order, seed_of
from tests.events.draws.rounds import ROUNDS
from tests.helpers.node import node

FREEZE = Freeze("holdfast.example/log/queues/3", 2_000, bytes(range(32)), beacon.CHAIN, 657413)
SIGNATURE = bytes.fromhex(ROUNDS[657413])
SEED = seed_of(FREEZE, SIGNATURE)


def test_the_order_of_a_draw_is_that_of_the_published_format() -> None:
    assert SEED.hex() == "d4b2b1c89da2e55f3eb617edbc53619c89ec5f610d10cb78eb09316785482b08"
    order = draw_order(SEED, 2_000)
    assert order[:5] == [112, 1480, 1013, 295, 874]
    assert hash_of_order(order).hex() == "271bbce0ca0a8fc75613820f5029c5176bfd8b447faa7275b67ea78620fccb21"
    assert sorted(order) == list(range(1, 2_001))


def test_a_change_of_any_part_of_a_freeze_changes_the_seed() -> None:
    others = [
        FREEZE._replace(origin="holdfast.example/log/queues/4"),
        FREEZE._replace(entries=2_001),
        FREEZE._replace(root=bytes(32)),
        FREEZE._replace(chain="00" * 32),
        FREEZE._replace(round=657414),
    ]
    assert len({SEED, seed_of(FREEZE, bytes(48)), *(seed_of(other, SIGNATURE) for other in others)}) == 7


def test_every_ticket_has_the_same_chance_of_every_place() -> None:
    firsts = Counter(draw_order(number.to_bytes(32, "big"), 4)[0] for number in range(4_000))
    assert all(900 < firsts[ticket] < 1_100 for ticket in range(1, 5))


def test_ten_lines_of_javascript_compute_the_same_order(tmp_path: Path) -> None:
    assert len(DRAWN_ORDER.splitlines()) <= 10
    origin, entries, root, chain, round = FREEZE
    arguments = json.dumps([origin, entries, b64encode(root).decode(), chain, round, SIGNATURE.hex()])
    script = tmp_path / "check.mjs"
    script.write_text(f"{DRAWN_ORDER}console.log(JSON.stringify(await drawnOrder(...{arguments})));")
    ran = node(tmp_path, script)
    assert json.loads(ran.stdout) == draw_order(SEED, 2_000), ran.stderr
