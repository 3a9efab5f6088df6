"""The head log has each signed head of every other log once, in order, also when processes are killed."""

import asyncio
from collections import Counter

from holdfast.events.log import head_log, sealing
from tests.events.log.log_scene import HOST, LogScene, begin_log_generations, head_log_scene, open_log
from tests.helpers.events_service import Service
from tests.helpers.sealing import seal_once


async def test_signed_heads_of_all_logs_are_in_the_head_log_once_and_in_order(service: Service) -> None:
    logs, head_scene = [await open_log(service) for _ in range(3)], head_log_scene(service)
    assert (await head_scene.get("/checkpoint")).status_code == 404
    for round in range(3):
        for log in logs[round:]:
            await log.arrive(1)
        await logs[0].seal()
        for log in logs:
            await log.read()
        await head_scene.read_checkpoints()

    entries = await head_scene.read_checkpoints()

    seen = {log.origin: [entry for entry in entries if entry.origin == log.origin] for log in logs}
    # A log that has not grown has no new head.
    assert [len(of_log) for of_log in seen.values()] == [1, 2, 3]
    for log in logs:
        assert seen[log.origin] == [*dict.fromkeys(log.heads)]
        assert (await head_scene.read_proof(log))[0] == log.heads[-1]
    assert len(entries) == 6
    assert (await head_scene.read_head()).origin == f"{HOST}/log/heads"
    assert (await head_scene.get("/proofs/1")).status_code == 404


async def test_processes_that_are_killed_or_work_at_once_lose_no_head_and_add_none_twice(service: Service) -> None:
    log, head_scene = await open_log(service), head_log_scene(service)
    await log.seal()
    for _ in range(4):
        await log.arrive(1)
        await asyncio.gather(*(seal_once(service.database) for _ in range(2)))
        slow = await service.database.transact(sealing.read_durable_heads)
        await asyncio.gather(*(sealing.sign(service.database) for _ in range(3)))
        await service.database.transact(lambda tx, slow=slow: sealing.sign_heads(tx, slow))
        await log.read_head()
        # Here each process is killed: what is signed is pending for the head log, and what is sealed is not published.
        if log.arrivals % 2:
            await asyncio.gather(*(seal_once(service.database) for _ in range(3)))
    [older] = await service.database.read(head_log.list_head_logs)
    await asyncio.gather(*(seal_once(service.database) for _ in range(3)))
    await asyncio.gather(*(head_log.publish(service.database) for _ in range(3)))
    await service.database.transact(lambda tx: head_log.store_checkpoint(tx, older, "older"))

    entries = await head_scene.read_checkpoints()

    assert [entry.size for entry in entries] == [2, 4, 6, 8, 10]
    assert Counter(entries).most_common(1)[0][1] == 1
    assert (await head_scene.read_proof(log))[0] == await log.read_head()


async def test_a_proof_names_the_newest_head_that_the_signed_head_log_has(service: Service) -> None:
    log, head_scene = await open_log(service), head_log_scene(service)
    await seal_once(service.database)
    await sealing.sign(service.database)
    early = await log.get("/head-proof")
    assert (early.status_code, early.headers["retry-after"]) == (404, "1")

    await log.seal()
    for _ in range(300):
        await log.arrive(1)
        await seal_once(service.database)
        await sealing.sign(service.database)
    before = (await head_scene.read_proof(log))[0]
    await log.seal()

    after, proof = await head_scene.read_proof(log)

    assert (before.size, after.size, proof.index) == (2, 602, 300)
    assert len(await head_scene.read_checkpoints()) == 301


async def test_after_a_restore_the_new_head_log_begins_with_the_head_of_the_old_one(service: Service) -> None:
    log, old = await open_log(service), head_log_scene(service)
    await log.seal()
    old_head = await old.read_head()
    await log.arrive(1)
    await seal_once(service.database)
    await sealing.sign(service.database)  # this head is pending in the backup

    begin_log_generations(service)
    await log.seal()

    new = head_log_scene(service, "/log/heads/2")
    first, pending, of_next = await new.read_checkpoints()
    assert first == old_head
    assert (pending.origin, pending.size) == (log.origin, 4)
    assert of_next.origin == f"{log.origin}/2"
    assert await old.content("/checkpoint") == await new.content("/checkpoint")
    assert (await new.read_proof(LogScene(service, 0, f"{log.path}/1")))[0] == pending
