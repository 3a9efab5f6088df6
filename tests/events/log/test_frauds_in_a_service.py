"""Frauds of an operator with the database and the key, in a running service; people find them over HTTP.

The sentences are those of `fraud_table.py`, which also makes the table in docs/events/frauds.md.
"""

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.events.settings import Settings
from holdfast_verify.check import catching_up, stored_heads
from tests.events.log.forger import Forger, run_forger
from tests.events.log.fraud_table import FRAUDS
from tests.events.log.verification import verify
from tests.helpers.people import end_event, erase
from tests.verify.audit.honest_event import Entry

RIGHT = (0, list[str]())


@pytest.fixture
async def forger(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Forger]:
    monkeypatch.setattr(catching_up, "TIMEOUT_SECONDS", 0)
    monkeypatch.setattr(stored_heads, "MAX_WAIT_SECONDS", 1)
    async with run_forger(settings, tmp_path) as forger:
        yield forger


def arrival(entries: list[Entry], number: int) -> Entry:
    return next(entry for entry in entries if entry["kind"] == "arrival" and entry["number"] == number)


def check(name: str, result: tuple[int, list[str]]) -> None:
    """A check has found a fraud, and says so as the table does."""
    code, findings = result
    assert (code, FRAUDS[name].is_in(findings)) == (1, True), findings


def swap(entries: list[Entry], *names: str) -> None:
    second, third = arrival(entries, 2), arrival(entries, 3)
    for name in names:
        second[name], third[name] = third[name], second[name]


async def test_people_who_were_swapped_before_the_seal_find_it_with_their_receipts(forger: Forger) -> None:
    await forger.register("ann", "ben", "cid")
    receipt = await forger.save_receipt("ben")
    await forger.run_sql(
        """
        update log_pending set user_ids = other.user_ids, nonces = other.nonces from log_pending as other
         where log_pending.first_number in (2, 3) and other.first_number = 5 - log_pending.first_number
        """
    )
    await forger.seal()

    assert await forger.verify() == RIGHT
    check("people swapped", await forger.verify(receipt))


async def test_an_arrival_that_was_put_before_another_with_its_time_is_found_in_the_log(forger: Forger) -> None:
    await forger.register("ann", "ben", "cid")
    await forger.run_sql(
        """
        update log_pending set user_ids = other.user_ids, nonces = other.nonces, received_at = other.received_at
          from log_pending as other
         where log_pending.first_number in (2, 3) and other.first_number = 5 - log_pending.first_number
        """
    )
    await forger.seal()

    check("people and times swapped", await forger.verify())


async def test_a_person_left_out_before_the_seal_finds_it_with_the_receipt(forger: Forger) -> None:
    await forger.register("ann", "ben", "cid")
    for table, column in (("registrations", "received_at"), ("log_pending", "received_at[1]")):
        await forger.run_sql(f"update {table} set {column} = {column} - interval '2 minutes'")
    receipt = await forger.save_receipt("ben")
    await forger.run_sql("delete from log_pending where first_number = 2")
    await forger.run_sql("update log_pending set first_number = 2, outcomes = '{registered}' where first_number = 3")
    await forger.run_sql("delete from registrations where log_number = 2")
    await forger.run_sql("update registrations set log_number = 2, status = 'registered' where log_number = 3")
    await forger.run_sql("update events set waitlisted_count = 0")
    await forger.seal()

    code, findings = await forger.verify()
    assert (code, [finding.partition(":")[0] for finding in findings]) == (1, ["late"]), "its times are from before"
    check("dropped before the seal", await forger.verify(receipt))


async def test_an_entry_invented_before_the_seal_is_not_found(forger: Forger) -> None:
    await forger.register("ann", "ben")
    receipt = await forger.save_receipt("ben")
    await forger.run_sql(
        """
        insert into log_pending (log_id, kind, first_number, received_at, user_ids, nonces, outcomes)
        select log_id, kind, 2, array[received_at[1] + interval '1 microsecond'], '{1}', array[gen_random_uuid()],
               '{registered}'
          from log_pending where first_number = 1
        """
    )
    await forger.run_sql(
        """
        insert into log_pending (log_id, kind, first_number, received_at, user_ids, nonces, outcomes)
        select log_id, kind, 3, received_at, user_ids, nonces, '{waitlisted}'
          from log_pending where first_number = 2 and user_ids <> '{1}'
        """
    )
    await forger.run_sql("delete from log_pending where first_number = 2 and user_ids <> '{1}'")
    await forger.run_sql("update registrations set log_number = 3, status = 'waitlisted' where log_number = 2")
    await forger.run_sql("update events set waitlisted_count = 1")
    await forger.seal()

    assert FRAUDS["invented before the seal"].message == "passes"
    assert await forger.verify(None, "--head-log") == await forger.verify(receipt) == RIGHT


async def test_an_entry_that_was_taken_out_of_the_sealed_log_is_found_with_an_earlier_head(forger: Forger) -> None:
    head = forger.directory / "head.txt"
    await forger.register("ann", "ben", "cid", "dan")
    await forger.seal()
    assert await forger.verify(None, "--head", head, "--head-log") == RIGHT
    saved = head.read_text()

    def drop(entries: list[Entry]) -> None:
        entries.remove(arrival(entries, 4))
        entries += [{**entries[-1]}, {**entries[-1]}]

    await forger.rewrite(drop)
    await forger.run_sql("delete from registrations where log_number = 4")
    await forger.run_sql("update events set waitlisted_count = 1")

    assert await forger.verify() == RIGHT, "the new log is right in itself"
    check("dropped after the seal", await forger.verify(None, "--head", head))
    assert head.read_text() == saved
    check("dropped after the seal", await forger.verify(None, "--head", head, "--head-log"))


async def test_an_entry_that_was_put_into_the_sealed_log_is_found_in_the_head_log(forger: Forger) -> None:
    await forger.register("ann", "ben")
    await forger.seal()

    def insert(entries: list[Entry]) -> None:
        entries.insert(2, {**arrival(entries, 1), "person": "x" * 43, "number": 2})
        entries[3] |= {"number": 3, "outcome": "waitlisted"}

    await forger.rewrite(insert)
    await forger.run_sql("update registrations set log_number = 3, status = 'waitlisted' where log_number = 2")
    await forger.run_sql("update events set waitlisted_count = 1")

    assert await forger.verify() == RIGHT, "the new log is right in itself"
    check("inserted after the seal", await forger.verify(None, "--head-log"))


async def test_a_last_arrival_that_was_deleted_with_its_row_is_found_in_the_head_log(forger: Forger) -> None:
    await forger.register("ann", "ben")
    await forger.seal()
    await forger.register("cid")
    await forger.seal()

    def drop(entries: list[Entry]) -> None:
        del entries[entries.index(arrival(entries, 3)) :]
        assert entries[-1]["kind"] == "seal"

    await forger.run_sql("update log_heads set signed_size = 0, checkpoint = null")
    await forger.rewrite(drop)
    await forger.run_sql("delete from registrations where log_number = 3")
    await forger.run_sql("update events set waitlisted_count = 0")

    assert await forger.verify() == RIGHT, "the new log is right in itself"
    code, findings = await forger.verify(None, "--head-log")
    check("dropped with its row", (code, findings))
    assert any("entries, after it had" in finding for finding in findings), "the head log is audited too"
    check_heads = await forger.verify(f"{forger.url}/log/heads")
    assert (check_heads[0], "entries, after it had" in check_heads[1][0]) == (1, True)


async def test_a_log_that_grows_while_the_head_log_is_read_is_read_again(forger: Forger) -> None:
    await forger.register("ann")
    await forger.seal()
    path = f"/log/events/{forger.event['id']}/checkpoint"
    earlier = (await forger.service.http.get(path)).content
    await forger.register("ben")
    await forger.seal()
    forger.first_answers[path] = [earlier]

    assert await forger.verify(None, "--head-log") == RIGHT
    assert forger.first_answers[path] == []


async def test_an_outcome_that_the_rules_do_not_give_is_found_in_the_log(forger: Forger) -> None:
    await forger.register("ann", "ben", "cid")
    await forger.run_sql("update log_pending set outcomes = '{registered}' where first_number = 3")
    await forger.run_sql("update registrations set status = 'registered' where log_number = 3")
    await forger.run_sql("alter table events drop constraint no_more_seats_than_capacity")
    await forger.run_sql("update events set waitlisted_count = 0, registered_count = 3")
    await forger.seal()

    code, findings = await forger.verify()
    check("outcome changed", (code, findings))
    assert len(findings) == 1


@pytest.mark.parametrize("is_settled", [True, False], ids=["settled", "pending"])
async def test_a_forged_cancellation_is_found_with_the_receipt(forger: Forger, is_settled: bool) -> None:
    await forger.register("ann")
    body = {"registration": {"event_id": forger.event["id"], "email": "ben@example.com"}}
    await forger.ada.post("/api/registrations", body)
    if is_settled:
        await forger.service.settle()
    receipt = await forger.save_receipt("ben")
    await forger.service.run_sql(
        """
        with by as materialized (select set_config('holdfast.changed_by', 'person', true))
        delete from registrations using by
         where user_id = (select id from users where email = 'ben@example.com')
        """
    )
    await forger.seal()

    assert await forger.verify() == RIGHT
    name = "cancellation forged" if is_settled else "cancellation forged before settlement"
    code, findings = await forger.verify(receipt)
    check(name, (code, findings))
    assert [finding.partition(":")[0] for finding in findings] == ["notice"], "people do cancel"


async def test_a_seat_that_differs_from_the_log_is_found_with_the_link_of_the_registration(
    forger: Forger,
) -> None:
    await forger.register("ann", "ben", "cid", "dan", "eve", together=True)
    await forger.seal()
    receipt, link = await forger.save_receipt("ann"), await forger.link("ann")
    honest = await forger.verify(receipt, "--registration", link), await forger.verify(link)
    assert honest == (RIGHT, RIGHT)
    await forger.run_sql("update registrations set status = 'rejected', reason = 'full' where log_number = 1")
    await forger.run_sql("update registrations set status = 'registered', reason = null where log_number = 5")

    assert await forger.verify() == await forger.verify(receipt) == RIGHT, "the counts are the same"
    check("settled against the log", await forger.verify(receipt, "--registration", link))
    check("settled against the log", await forger.verify(link))
    await forger.run_sql("delete from registrations where log_number = 1")
    code, [finding] = await forger.verify(receipt, "--registration", link)
    assert code == 1
    assert finding.startswith("notice: The service shows no registration behind the link. The log leads to a seat.")


async def test_counts_that_differ_from_the_log_are_found(forger: Forger) -> None:
    await forger.register("ann")
    await forger.seal()
    await forger.run_sql("update events set registered_count = 2")

    check("counts against the log", await forger.verify())


async def test_an_older_data_directory_is_found_with_a_head_that_was_saved_since(forger: Forger) -> None:
    await forger.register("ann")
    await forger.seal()
    await forger.copy_data()
    await forger.register("ben")
    await forger.seal()
    head, receipt = forger.directory / "head.txt", await forger.save_receipt("ben")
    assert await forger.verify(None, "--head", head) == await forger.verify(receipt) == RIGHT

    await forger.go_back()

    assert await forger.verify(None, "--head-log") == RIGHT, "all of it went back"
    check("fork", await forger.verify(None, "--head", head))
    await forger.register("cid", "dan")
    await forger.seal()
    assert await forger.verify(None, "--head-log") == RIGHT
    check("dropped after the seal", await forger.verify(None, "--head", head))


async def test_a_replaced_key_is_found_with_a_saved_head(forger: Forger) -> None:
    await forger.register("ann")
    await forger.seal()
    head = forger.directory / "head.txt"
    assert await forger.verify(None, "--head", head) == RIGHT
    saved = head.read_text()

    await forger.replace_key()

    assert await forger.verify() == RIGHT
    check("key replaced", await forger.verify(None, "--head", head))
    assert head.read_text() == saved


async def test_seats_that_were_given_while_the_log_was_switched_off_are_named(forger: Forger) -> None:
    await forger.register("ann", "ben", "cid", "dan")
    path = f"/api/events/{forger.event['id']}"
    await forger.ada.patch(path, {"event": {"public_log": False}})
    await forger.seal()
    code, findings = await forger.verify()
    assert (code, findings) == RIGHT, "a log that has ended is right"
    await forger.run_sql("update registrations set status = 'registered' where log_number = 4")
    await forger.run_sql("delete from registrations where log_number = 1")
    await forger.run_sql("update events set waitlisted_count = 1")
    await forger.ada.patch(path, {"event": {"public_log": True}})
    await forger.seal()

    code, findings = await forger.verify()
    check("switched off and on", (code, findings))
    assert [finding.partition(":")[0] for finding in findings] == ["notice"], "organizers may switch it off"


async def test_a_fault_in_an_earlier_log_is_reported_for_the_newest_log(forger: Forger) -> None:
    await forger.register("ann", "ben", "cid")
    await forger.run_sql("update log_pending set outcomes = '{registered}' where first_number = 3")
    await forger.seal()
    forger.restore()
    await forger.seal()

    code, findings = await forger.verify()
    check("outcome changed", (code, findings))


async def test_registrations_that_a_restored_backup_has_lost_are_found_with_a_receipt_or_a_head(forger: Forger) -> None:
    head = forger.directory / "head.txt"
    await forger.register("ann")
    await forger.seal()
    await forger.copy_data()
    await forger.register("ben")
    await forger.run_sql(
        "update registrations set received_at = received_at - interval '2 minutes' where log_number = 2"
    )
    await forger.seal()
    receipt = await forger.save_receipt("ben")
    assert (await forger.verify(None, "--head", head)) == RIGHT

    await forger.go_back()
    forger.restore()
    await forger.seal()

    assert await forger.verify() == RIGHT, "a restored backup is no fraud"
    code, findings = await forger.verify(receipt)
    check("restored backup", (code, findings))
    assert [finding.partition(":")[0] for finding in findings] == ["notice"], "a real backup loses them too"
    code, [lost] = await forger.verify(None, "--head", head)
    assert (code, lost.startswith("notice: The saved head of "), "as after a restored backup" in lost) == (
        1,
        True,
        True,
    )


async def test_seats_that_were_changed_in_a_backup_are_named(forger: Forger) -> None:
    await forger.register("ann", "ben", "cid")
    await forger.seal()
    await forger.run_sql("delete from registrations where log_number = 2")
    await forger.run_sql("update events set registered_count = 1")
    forger.restore()
    await forger.seal()

    code, findings = await forger.verify()
    check("restored backup without an entry", (code, findings))
    assert [finding.partition(":")[0] for finding in findings] == ["notice"]


async def test_a_proof_of_another_log_is_found_when_the_log_is_named(forger: Forger) -> None:
    other = await forger.ada.create_event()
    await forger.ada.register(other["id"], email="zoe@example.com")
    await forger.register("ann")
    await forger.seal()
    proofs = {
        event["id"]: (await forger.service.http.get(f"/log/events/{event['id']}/proofs/1")).content
        for event in (forger.event, other)
    }
    file = forger.directory / "1.tlog-proof"
    file.write_bytes(proofs[forger.event["id"]])
    assert await forger.verify(file, "--log", forger.log) == RIGHT

    file.write_bytes(proofs[other["id"]])

    assert await forger.verify(file) == RIGHT
    check("proof of another log", await forger.verify(file, "--log", forger.log))


async def test_honest_actions_of_people_and_organizers_are_no_fraud(forger: Forger) -> None:
    head = forger.directory / "head.txt"
    await forger.register("ann", "ben", "cid", "dan", "eve", together=True)
    await forger.seal()
    receipts = {name: await forger.save_receipt(name) for name in ("ann", "cid", "dan")}
    link = await forger.link("cid")
    await forger.ada.delete(forger.answers["ann"]["next"]["url"])
    await forger.ada.patch(forger.answers["dan"]["next"]["url"], {"registration": {"status": "registered"}})
    await forger.seal()

    assert await forger.verify(None, "--head", head, "--head-log") == RIGHT
    assert await forger.verify(receipts["ann"]) == RIGHT, "the organizer removed it, and the log says so"
    assert await forger.verify(receipts["cid"], "--registration", link) == RIGHT
    assert json.loads(receipts["dan"].read_text())["status"] == "waitlisted"
    saved = head.read_text().splitlines()
    root = b64decode(saved[2]).hex()
    mail_line = f"{saved[1]} entries, {root[:4]} {root[4:8]}"
    forger.restore()
    await forger.seal()
    assert await forger.verify(None, "--mail-line", mail_line) == RIGHT, "the line of a mail may be of the log before"
    assert await forger.verify(None, "--head", head, "--head-log") == RIGHT
    assert await forger.verify(receipts["cid"], "--registration", link) == RIGHT
    await forger.register("fay")
    await forger.seal()
    assert await forger.verify(None, "--head", head, "--head-log") == RIGHT
    assert await forger.verify(f"{forger.url}/log/heads") == RIGHT


async def test_a_person_erased_before_the_event_reads_that_the_log_says_cancelled(
    forger: Forger,
) -> None:
    await forger.register("ann", "ben")
    await forger.seal()
    receipt, link = await forger.save_receipt("ann"), await forger.link("ann")
    await erase(forger.service)
    await forger.seal()

    assert await forger.verify(None, "--head-log") == RIGHT
    code, [finding] = await forger.verify(receipt, "--registration", link)
    assert (code, finding.startswith("notice: The log says that you cancelled at ")) == (1, True)


async def test_a_person_erased_after_the_event_reads_that_the_service_shows_no_registration(forger: Forger) -> None:
    await forger.register("ann")
    await forger.seal()
    receipt, link = await forger.save_receipt("ann"), await forger.link("ann")
    await end_event(forger.service, forger.event)
    await erase(forger.service)
    await forger.seal()

    code, [finding] = await forger.verify(receipt, "--registration", link)
    assert (code, finding.startswith("notice: The service shows no registration behind the link.")) == (1, True)


async def test_the_address_of_an_earlier_log_does_not_make_the_later_one_look_hidden(forger: Forger) -> None:
    head = forger.directory / "head.txt"
    await forger.register("ann")
    await forger.seal()
    forger.restore()
    await forger.seal()
    assert await forger.verify(None, "--head", head) == RIGHT

    assert await forger.verify(f"{forger.log}/1", "--head-log") == RIGHT
    code, report = await asyncio.to_thread(verify, f"{forger.log}/1", "--head", head)
    assert (code, "give the address of the log without a number" in report["error"]) == (2, True)


async def test_a_later_log_that_is_hidden_is_found_with_a_head_of_it_and_in_the_head_log(forger: Forger) -> None:
    head = forger.directory / "head.txt"
    await forger.register("ann")
    await forger.seal()
    forger.restore()
    await forger.seal()
    assert await forger.verify(None, "--head", head) == RIGHT
    last = "(select max(id) from logs where event_id is not null)"
    await forger.run_sql(f"delete from log_heads where log_id = {last}")
    await forger.run_sql(f"delete from logs where id = {last}")
    await forger.run_sql("update logs set closed_at = null where event_id is not null")

    code, findings = await forger.verify(None, "--head", head)
    assert (code, "The service shows it no more" in " ".join(findings)) == (1, True)
    code, findings = await forger.verify(None, "--head-log")
    assert (code, "The service shows that log no more" in " ".join(findings)) == (1, True)


async def test_a_rejected_registration_that_was_deleted_since_is_no_difference(forger: Forger) -> None:
    await forger.register("ann", "ben", "cid", "dan", "eve", together=True)
    await forger.seal()
    receipt, link = await forger.save_receipt("eve"), await forger.link("eve")
    await forger.service.run_sql("delete from registrations where status = 'rejected'")

    assert await forger.verify(receipt, "--registration", link) == RIGHT


async def test_a_link_of_another_registration_than_the_receipt_is_refused(forger: Forger) -> None:
    await forger.register("ann", "ben")
    await forger.seal()
    receipt, link = await forger.save_receipt("ann"), await forger.link("ben")

    code, report = await asyncio.to_thread(verify, receipt, "--registration", link)

    assert (code, "is of another registration" in report["error"]) == (2, True)
