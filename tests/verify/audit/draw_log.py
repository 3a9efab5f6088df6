"""The log of a list that is drawn, as its rules want it."""

import datetime as dt
import json
from typing import Any

from holdfast_verify.audit.draw import check_draw
from holdfast_verify.formats import beacon
from holdfast_verify.formats.drawn_order import PAUSE, Freeze, draw_order, freeze_details, hash_of_order, seed_of
from holdfast_verify.formats.tree import append, leaf_hash
from tests.events.draws.rounds import ROUNDS

SEATS, WAITING_PLACES = 2, 2

ORIGIN = "holdfast.example/log/queues/3"

ROUND = 657413

CLOSES = beacon.time_of(ROUND) - PAUSE

DrawLog = list[dict[str, Any]]


def time_at(seconds: float) -> str:
    """A time, this many seconds after the list closes, as a log has it."""
    return (CLOSES + dt.timedelta(seconds=seconds)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def root_of(log: DrawLog, size: int) -> bytes:
    return append(0, {}, [leaf_hash(json.dumps(entry).encode()) for entry in log[:size]]).root


def arrival_entry(number: int, seconds: float) -> dict[str, Any]:
    return {"kind": "arrival", "number": number, "at": time_at(seconds), "person": f"person {number}"}


def named_round(round: int = ROUND) -> dict[str, Any]:
    return {"chain": beacon.CHAIN, "round": round, "at": time_at(0)}


def list_of_five() -> DrawLog:
    """A log up to the close of its list: five entries."""
    opened = {
        "kind": "open",
        "at": time_at(-90),
        "origin": ORIGIN,
        "of": "queue",
        "first_number": 1,
        "draw": named_round(),
    }
    return [opened, *(arrival_entry(number, number - 60) for number in range(1, 6)), {"kind": "seal", "at": time_at(1)}]


def freeze(log: DrawLog, seconds: float = 2, entries: int = 5, round: int = ROUND) -> None:
    details = freeze_details(entries, len(log), root_of(log, len(log)), round)
    log += [
        {"kind": "freeze", "at": time_at(seconds), **details},
        arrival_entry(6, seconds + 1),
        {"kind": "seal", "at": time_at(seconds + 2)},
    ]


def draw(log: DrawLog, round: int = ROUND, entries: int = 5) -> None:
    frozen = next(entry for entry in log if entry["kind"] == "freeze")
    root = root_of(log, frozen["size"])
    seed = seed_of(Freeze(ORIGIN, entries, root, beacon.CHAIN, round), bytes.fromhex(ROUNDS[round]))
    order = hash_of_order(draw_order(seed, entries)).hex()
    log += [
        {
            "kind": "draw",
            "at": time_at(125),
            "round": round,
            "signature": ROUNDS[round],
            "seed": seed.hex(),
            "order": order,
        },
        {"kind": "release", "at": time_at(126), "from": 1, "to": 1},
    ]


def drawn_log() -> DrawLog:
    log = list_of_five()
    freeze(log)
    draw(log)
    return log


def faults_of(log: DrawLog) -> str:
    return " ".join(check_draw(log, ORIGIN, lambda size: root_of(log, size)))


def void_entry(seconds: float) -> dict[str, Any]:
    return {"kind": "change", "at": time_at(seconds), "draw": {**named_round(), "void": True}, "by": "service"}


def place_entry(number: int, outcome: str, seconds: float = 130) -> dict[str, Any]:
    return {"kind": "place", "at": time_at(seconds), "number": number, "outcome": outcome}


def event_log() -> DrawLog:
    """A log up to the close of its list: five entries."""
    log = list_of_five()
    log[0] |= {"of": "event", "format": "holdfast-order/1", "capacity": SEATS, "waiting_places": WAITING_PLACES}
    for entry in log:
        if entry["kind"] == "arrival":
            entry["person"] = 43 * "A"
    return log


def frozen_log() -> DrawLog:
    log = event_log()
    freeze(log)
    log[-2]["person"] = 43 * "A"
    return log


def place_entries(order: list[int]) -> DrawLog:
    by_place = SEATS * ["registered"] + WAITING_PLACES * ["waitlisted"]
    return [
        place_entry(number, outcome)
        for number, outcome in zip(order, [*by_place, "rejected", "rejected"], strict=False)
    ]


def order_of(log: DrawLog) -> list[int]:
    return draw_order(bytes.fromhex(next(entry for entry in log if entry["kind"] == "draw")["seed"]), 5)


def placed_log(log: DrawLog | None = None, *confirmed: int) -> DrawLog:
    """A right log: the confirmed entries in the drawn order, the others of the five in it, then the late one."""
    log = log or frozen_log()
    draw(log)
    log.pop()
    order = sorted(order_of(log), key=lambda number: number not in confirmed)
    return [*log, *place_entries([*order, 6]), {"kind": "seal", "at": time_at(131)}]


def confirmations_entry(*numbers: int) -> dict[str, Any]:
    return {"kind": "confirmations", "at": time_at(1.5), "numbers": [*numbers]}


def frozen_with_confirmed(*numbers: int) -> DrawLog:
    """A log in which some entries were confirmed, and the list was frozen then."""
    log = [*event_log(), confirmations_entry(*numbers), {"kind": "seal", "at": time_at(1.6)}]
    freeze(log)
    log[-2]["person"] = 43 * "A"
    return log
