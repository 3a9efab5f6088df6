"""After a restore each log begins again and names the old head, since the old log went on after the backup."""

from base64 import b64encode

from tests.events.log.log_scene import LogScene, begin_log_generations, open_log, read_verified_entry
from tests.helpers.events_service import Service


async def test_a_restored_log_goes_on_under_another_name_and_says_where_the_old_one_was(service: Service) -> None:
    old = await open_log(service)
    await old.arrive(3)
    await old.seal()
    await service.run_sql("update logs set arrivals = 4 where id = %(id)s", id=old.log_id)
    await old.read()
    await old.arrive(1)  # pending in the backup: the old log has it

    begin_log_generations(service)
    [(log_id, generation, arrivals)] = await service.run_sql(
        "select id, generation, arrivals from logs where closed_at is null and event_id is not null"
    )
    new = LogScene(service, log_id, f"{old.path}/2", arrivals=4)
    await new.arrive(2)
    await new.seal()

    assert (generation, arrivals) == (2, 4)
    opened, *_, seal = await new.read()
    head = old.heads[0]
    assert opened["after"] == {"origin": old.origin, "size": head.size, "root": b64encode(head.root).decode()}
    assert (opened["origin"], opened["first_number"], seal["kind"]) == (f"{old.origin}/2", 5, "seal")
    assert (await new.read_head()).origin == f"{old.origin}/2"
    # The address without a generation is that of the newest; arrivals are proved in the log that has them.
    assert await old.content("/checkpoint") == await new.content("/checkpoint")
    assert (await old.get("/1/checkpoint")).text.startswith(f"{old.origin}\n{head.size}\n")
    assert await read_verified_entry(new, "/proofs/6")
    assert (await old.content("/proofs/6")) == await new.content("/proofs/6")
    assert (await old.content("/proofs/3")) == await old.content("/1/proofs/3")
    assert (await old.get("/proofs/4")).status_code == 404


async def test_a_restored_log_without_sealed_entries_starts_again(service: Service) -> None:
    old = await open_log(service)

    begin_log_generations(service)
    begin_log_generations(service)

    [(log_id,)] = await service.run_sql("select id from logs where closed_at is null")
    new = LogScene(service, log_id, f"{old.path}/3")
    await new.seal()
    assert [entry["kind"] for entry in await new.read()] == ["open", "seal"]
