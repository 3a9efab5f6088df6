"""Pending rows become entries of the log, once and in order, in any batches and by any process."""

import asyncio
import json
import random
import re
from datetime import timedelta
from typing import Any

import pytest

from holdfast.events.log import keys, sealing
from holdfast_verify.formats.entries import commitment, person_text
from tests.events.log.log_scene import START, begin_log, open_log
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Service, eventually
from tests.helpers.sealing import seal_once


async def test_entries_are_written_as_the_format_says(service: Service) -> None:
    log = await open_log(service)
    [(user_id, public_id)] = await service.run_sql("select id, public_id from users limit 1")
    await log.arrive(1, user_id=user_id, cut=START + timedelta(seconds=9))
    await log.pend("change", {"by": "organizer", "reason": "by_organizer", "from": "registered", "to": "removed"})
    await log.pend(
        "change",
        {"person": "A" * 43, "received_at": "2026-11-26T13:00:01+00:00", "from": "pending", "to": "removed"}
        | {"by": "person"},
    )
    await log.pend("close", {"reason": "switched_off"})
    await log.seal()

    *entries, seal = await log.read()

    at = '"at":"2026-11-26T13:00:00.123456Z"'
    number = log.path.rpartition("/")[2]
    person = person_text(commitment(f"event {number}", public_id, (1).to_bytes(16)))
    expected = f"""
        {{"kind":"open","format":"holdfast-order/1",{at},"origin":"{log.origin}","of":"event","capacity":100,
         "waiting_places":10,"seated":0,"waiting":0,"first_number":1}}
        {{"kind":"arrival","number":1,{at},"outcome":"registered","person":"{person}"}}
        {{"kind":"change",{at},"from":"registered","to":"removed","by":"organizer","reason":"by_organizer"}}
        {{"kind":"change",{at},"person":"{"A" * 43}","received_at":"2026-11-26T13:00:01.000000Z","from":"pending",
         "to":"removed","by":"person"}}
        {{"kind":"close",{at},"reason":"switched_off"}}
    """
    assert "".join(json.dumps(entry, separators=(",", ":")) for entry in entries) == re.sub(r"\s", "", expected)
    assert list(seal) == ["kind", "at", "cut"]
    assert seal["cut"] == "2026-11-26T13:00:09.123456Z"
    assert await service.run_sql("select from log_pending where log_id = %(id)s", id=log.log_id) == []


async def test_the_log_of_a_queue_has_tickets_and_the_ids_of_visitors_as_commitments(service: Service) -> None:
    queue = await (await service.organizer()).create_queue()
    log = await begin_log(service, "queues", queue["id"])
    await log.pend("open", {"of": "queue", "first_number": 41, "released": 7})
    await service.run_sql(
        """
        insert into log_pending (log_id, kind, first_number, received_at, visitor_ids, nonces)
        values (%(log_id)s, 'arrivals', 41, array[%(at)s::timestamptz, %(at)s], '{ann,"ben, 2"}',
                array[null, %(nonce)s]::uuid[])
        """,
        log_id=log.log_id,
        at=START,
        nonce=f"{7:032x}",
    )
    await log.seal()

    opened, ann, ben, _ = await log.read()

    assert (opened["first_number"], opened["released"], ann["number"], ben["number"]) == (41, 7, 41, 42)
    assert ben["person"] == person_text(commitment(f"queue {queue['id']}", "ben, 2", (7).to_bytes(16)))
    assert len(ann["person"]) == 43
    assert "outcome" not in ann


@pytest.mark.parametrize("seed", range(2))
async def test_a_log_sealed_in_any_batches_is_the_tree_of_all_entries_and_only_grows(
    service: Service, seed: int
) -> None:
    choices, entries = random.Random(seed), list[dict[str, Any]]()
    log = await open_log(service)
    for _ in range(6):
        for _ in range(choices.randint(1, 3)):
            await log.arrive(choices.choice((1, 2, 100, 253, 254, 255, 256, 300)))
            if choices.random() < 0.3:
                await log.pend("change", {"capacity": 120, "waiting_places": 10, "by": "organizer"})
        await log.seal(max_entries=choices.choice((1, 300, 4_000)))
        entries = await log.read()

        numbers = [entry["number"] for entry in entries if entry["kind"] == "arrival"]
        assert numbers == list(range(1, log.arrivals + 1))
        assert entries[-1]["kind"] == "seal"
    stored = await service.run_sql(
        "select number, arrivals_before from log_entries where log_id = %(id)s order by number", id=log.log_id
    )
    assert stored == [
        (number, sum(entry["kind"] == "arrival" for entry in entries[: 256 * number])) for number in range(len(stored))
    ]


async def test_concurrent_sealers_and_signers_make_one_log(service: Service) -> None:
    logs = [await open_log(service) for _ in range(3)]
    for log in logs:
        await log.arrive(5)

    await asyncio.gather(*(logs[0].seal(max_entries=2) for _ in range(4)))
    await logs[0].seal()

    for log in logs:
        entries = await log.read()
        assert [entry["number"] for entry in entries if entry["kind"] == "arrival"] == [1, 2, 3, 4, 5]
    assert len(await service.run_sql("select from log_keys")) == 1


async def test_an_unsigned_head_is_not_shown_and_the_next_sealer_signs_it(service: Service) -> None:
    log = await open_log(service)
    await seal_once(service.database)

    unsigned = await log.get("/checkpoint")
    assert (unsigned.status_code, unsigned.headers["retry-after"]) == (404, "1")

    await sealing.sign(service.database)
    assert len(await log.read()) == 2
    await log.arrive(1)
    await seal_once(service.database)
    assert len(await log.read()) == 2
    assert (await log.get("/tile/0/000.p/4")).status_code == 404

    await log.seal()
    assert len(await log.read()) == 4


async def test_an_older_head_does_not_replace_a_newer_one(service: Service) -> None:
    log = await open_log(service)
    await seal_once(service.database)
    slow = await service.database.transact(sealing.read_durable_heads)
    await log.arrive(1)
    await log.seal()

    await service.database.transact(lambda tx: sealing.sign_heads(tx, slow))

    assert (await log.read_head()).size == 4


async def test_arrivals_of_a_deleted_account_have_commitments_that_nothing_opens(service: Service) -> None:
    log = await open_log(service)
    await log.arrive(2, user_id=4711)
    await log.seal()

    people = [entry["person"] for entry in await log.read() if entry["kind"] == "arrival"]

    assert len({*people}) == 2


async def test_a_log_with_many_entries_to_seal_holds_up_no_other(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "MAX_LOGS", 2)
    crowded, *others = [await open_log(service) for _ in range(4)]
    for _ in range(20):
        await crowded.arrive(50)

    assert await seal_once(service.database, max_entries=100)
    await sealing.sign(service.database)

    assert [(await log.read_head()).size for log in others] == [2, 2, 2]
    assert (await crowded.read_head()).size == 102
    await crowded.seal(max_entries=100)
    assert len(await crowded.read()) == 1 + 1000 + 10


async def test_every_log_is_signed_even_when_a_full_round_of_them_is_busy(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "MAX_LOGS", 2)
    logs = [await open_log(service, seal=True) for _ in range(5)]

    # The second time, the head log is sealed too. It is signed elsewhere.
    for _ in range(2):
        for log in logs:
            await log.arrive(1)
        await seal_once(service.database)
        await sealing.sign(service.database)

    assert {(await log.read_head()).size for log in logs} == {6}


async def test_processes_that_need_the_first_key_at_once_get_the_same(service: Service) -> None:
    made = await asyncio.gather(*(service.database.transact(keys.signing_key) for _ in range(4)))

    assert len({key.private_bytes_raw() for key in made}) == 1


async def test_the_log_of_an_event_that_is_deleted_meanwhile_holds_up_no_other(service: Service) -> None:
    gone, log = await open_log(service, seal=True), await open_log(service)
    await gone.arrive(1)
    await service.run_sql("delete from logs where id = %(id)s", id=gone.log_id)

    await log.seal()

    assert len(await log.read()) == 2


async def test_the_sealing_loop_seals_and_signs_new_entries_and_those_of_a_killed_process(service: Service) -> None:
    left, log = await open_log(service), await open_log(service)
    await seal_once(service.database)  # and the process is killed before it signs
    await log.arrive(1)

    async def are_signed() -> bool:
        return [(await one.get("/checkpoint")).status_code for one in (left, log)] == [200, 200]

    async with run_in_background(sealing.LOOP.run(service.database)):
        await eventually(are_signed)

    assert len(await left.read()) == 2
    assert len(await log.read()) == 4
