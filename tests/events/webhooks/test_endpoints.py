"""Endpoints of webhooks over the API: make them, change them, rotate their secrets, test them, send messages again."""

from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from holdfast.events.organizers import accounts
from holdfast.events.ownership import end_stranger
from holdfast.events.webhooks.operations import MAX_ENDPOINTS
from holdfast.kit.webhooks import endpoints, sending
from holdfast.kit.webhooks.sending import DeliveryWork
from tests.helpers.events_service import Client, Service
from tests.helpers.webhook_programs import OrganizerProgram, OrganizerPrograms, change
from tests.helpers.webhook_receiver import ReceiverAnswer, deliver, fan_all_out


async def make(organizer: Client, **fields: Any) -> Any:
    fields = {"url": "https://shop.example/hooks", **fields}
    return await organizer.post("/api/webhook_endpoints", {"webhook_endpoint": fields})


@pytest.fixture
async def ada(service: Service) -> Client:
    return await service.organizer()


@pytest.fixture
async def program(ada: Client, programs: OrganizerPrograms) -> OrganizerProgram:
    return await programs.add(ada)


async def test_the_secret_of_an_endpoint_is_shown_once(ada: Client, program: OrganizerProgram) -> None:
    assert program.endpoint["secret"].startswith("whsec_")
    listed = (await ada.get("/api/webhook_endpoints")).json()["data"]
    assert "secret" not in listed[0]
    assert "secret" not in (await ada.get(program.path)).json()["data"]


async def test_the_secret_of_an_endpoint_is_stored_sealed(service: Service, program: OrganizerProgram) -> None:
    [(sealed,)] = await service.run_sql("select sealed from webhook_endpoints")

    assert program.endpoint["secret"].removeprefix("whsec_").encode() not in bytes(sealed)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://shop.example/", "must begin with https://, as https://shop.example/webhooks does"),
        ("ftp://shop.example/", "must begin with https://, as https://shop.example/webhooks does"),
        ("https://shop.example:8443/", "must use the default port, 80 for http or 443 for https"),
        ("https://ada:secret@shop.example/", "must not carry a user name or password"),
        ("shop.example", "must begin with https://, as https://shop.example/webhooks does"),
    ],
)
async def test_an_address_that_no_message_may_go_to_is_refused(ada: Client, url: str, reason: str) -> None:
    answer = await make(ada, url=url)

    assert answer.status_code == 422
    assert answer.json()["errors"] == {"url": [reason]}


async def test_a_type_that_does_not_exist_is_refused_with_the_choices(ada: Client) -> None:
    answer = await make(ada, types=["registration.settled", "registration.lost"])

    [reason] = answer.json()["errors"]["types"]
    assert reason.startswith("registration.lost is not a type of message; choose from registration.settled, ")


async def test_an_organizer_has_at_most_so_many_endpoints(ada: Client) -> None:
    answers = [await make(ada) for _ in range(MAX_ENDPOINTS + 1)]

    assert [answer.status_code for answer in answers] == [201] * MAX_ENDPOINTS + [answers[-1].status_code]
    assert answers[-1].json()["code"] == "quota_exceeded"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/rotate_secret"),
        ("POST", "/ping"),
        ("GET", "/deliveries"),
        ("POST", "/resend"),
        ("POST", "/messages/msg_1/resend"),
        ("GET", "/messages/msg_1/attempts"),
    ],
)
async def test_an_organizer_does_not_find_the_endpoint_of_another(
    service: Service, program: OrganizerProgram, method: str, path: str
) -> None:
    ben = await service.organizer()
    await program.organizer.create_event()
    await deliver(service.database)

    bodies: dict[str, Any] = {"": {"webhook_endpoint": {}}, "/resend": {"since": "2026-01-01T00:00:00Z"}}
    answer = await ben.request(method, program.path + path, bodies.get(path) if method != "GET" else None)

    assert answer.status_code == 404
    assert await service.run_sql("select count(*) from webhook_endpoints") == [(1,)]


async def test_an_admin_is_refused_with_the_hint_to_use_the_key_of_an_organizer(
    service: Service, program: OrganizerProgram
) -> None:
    admin = await service.admin()

    for answer in (
        await admin.get("/api/webhook_endpoints"),
        await admin.get(program.path),
        await admin.get(f"{program.path}/deliveries"),
        await admin.get(f"{program.path}/messages/msg_1/attempts"),
        await admin.post(f"{program.path}/messages/msg_1/resend"),
        await make(admin),
    ):
        assert (answer.status_code, answer.json()["error"]) == (403, "An admin has no webhooks.")


async def test_an_endpoint_is_not_moved_to_an_address_that_no_message_may_go_to(
    ada: Client, program: OrganizerProgram
) -> None:
    answer = await ada.patch(program.path, {"webhook_endpoint": {"url": "http://shop.example/", "types": ["a.b"]}})

    assert answer.json()["code"] == "validation_failed"
    assert answer.json()["errors"].keys() == {"url", "types"}
    assert (await ada.get(program.path)).json()["data"]["types"] == []


async def test_a_paused_endpoint_gets_nothing_of_what_happens_meanwhile(ada: Client, program: OrganizerProgram) -> None:
    await change(ada, program.path, active=False)
    await ada.create_event()
    await program.deliver()
    await change(ada, program.path, active=True)
    await ada.create_event(title="Later")
    await program.deliver()

    assert [message.content["data"]["title"] for message in program.receiver.received] == ["Later"]


async def test_for_a_day_after_a_rotation_both_secrets_sign(
    service: Service, ada: Client, program: OrganizerProgram
) -> None:
    answer = await ada.post(f"{program.path}/rotate_secret")
    secrets = program.endpoint["secret"], answer.json()["data"]["secret"]
    await ada.create_event()
    await program.deliver()

    [message] = program.receiver.received
    assert secrets[0] != secrets[1]
    for secret in secrets:
        Webhook(secret).verify(message.body, message.headers)


async def test_a_secret_that_was_replaced_twice_signs_no_more(ada: Client, program: OrganizerProgram) -> None:
    for _ in range(2):
        await ada.post(f"{program.path}/rotate_secret")
    await ada.create_event()
    await program.deliver()

    [message] = program.receiver.received
    with pytest.raises(WebhookVerificationError):
        Webhook(program.endpoint["secret"]).verify(message.body, message.headers)


async def test_a_ping_reaches_the_endpoint_whatever_types_it_chose(
    ada: Client, program: OrganizerProgram, programs: OrganizerPrograms
) -> None:
    chosen = await programs.add(ada, types=["event.full"])

    assert (await ada.post(f"{chosen.path}/ping")).status_code == 204
    await chosen.deliver()

    assert chosen.receiver.types == ["ping"]
    assert program.receiver.types == []


async def test_one_message_is_sent_again_with_the_same_id(ada: Client, program: OrganizerProgram) -> None:
    await ada.create_event()
    await program.deliver()
    [message] = program.receiver.received

    answer = await ada.post(f"{program.path}/messages/{message.id}/resend")
    await program.deliver()

    assert answer.json()["data"] == {"count": 1}
    assert [again.id for again in program.receiver.received] == [message.id] * 2


async def test_the_failed_messages_of_a_time_are_sent_again(
    service: Service, ada: Client, program: OrganizerProgram
) -> None:
    program.receiver.answer = lambda message: ReceiverAnswer(500 if message.content["data"]["title"] == "Bad" else 204)
    for title in ("Good", "Good", "Bad"):
        await ada.create_event(title=title)
        await program.deliver()
    await service.run_sql(
        "update webhook_deliveries set status = 'failed', due_at = null, ended_at = now() where status = 'waiting'"
    )
    program.receiver.answer = lambda _: ReceiverAnswer()
    before = len(program.receiver.received)

    answer = await ada.post(f"{program.path}/resend", {"since": "2026-01-01T00:00:00Z"})
    await program.pass_pauses()
    await program.deliver()

    assert answer.json()["data"] == {"count": 1}
    assert [message.content["data"]["title"] for message in program.receiver.received[before:]] == ["Bad"]


async def test_a_call_sends_a_limited_number_again_and_names_the_message_after_which_the_next_goes_on(
    ada: Client, program: OrganizerProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "MAX_RESENT", 2)
    for _ in range(5):
        await ada.create_event()
    await program.deliver()
    ids = [delivery["message_id"] for delivery in await program.deliveries()]
    path, command = f"{program.path}/resend", {"since": "2026-01-01T00:00:00Z", "only_failed": False}

    answers = [(await ada.post(path, command)).json()["data"]]
    while after := answers[-1].get("next_after"):
        answers.append((await ada.post(path, {**command, "after": after})).json()["data"])
    await program.deliver()

    assert answers == [{"count": 2, "next_after": ids[1]}, {"count": 2, "next_after": ids[3]}, {"count": 1}]
    assert sorted(message.id for message in program.receiver.received) == sorted(ids * 2)


async def test_messages_before_and_after_the_time_are_not_sent_again(
    service: Service, ada: Client, program: OrganizerProgram
) -> None:
    for _ in range(4):
        await ada.create_event()
    await program.deliver()
    ids = [delivery["message_id"] for delivery in await program.deliveries()]
    await service.run_sql(
        "update webhook_messages set created_at = '2027-05-01T12:00:00Z'::timestamptz + number * interval '1 second'"
        "  from (select id, row_number() over (order by id) as number from webhook_messages) as numbered"
        " where numbered.id = webhook_messages.id"
    )
    time = {"since": "2027-05-01T12:00:02Z", "until": "2027-05-01T12:00:03Z"}

    answer = await ada.post(f"{program.path}/resend", {**time, "only_failed": False})
    await program.deliver()

    assert answer.json()["data"] == {"count": 2}
    assert sorted(message.id for message in program.receiver.received) == sorted([*ids, *ids[1:3]])


async def test_all_messages_of_a_time_are_sent_again_if_asked_for(ada: Client, program: OrganizerProgram) -> None:
    for _ in range(3):
        await ada.create_event()
    await program.deliver()

    answer = await ada.post(f"{program.path}/resend", {"since": "2026-01-01T00:00:00Z", "only_failed": False})
    await program.deliver()

    assert answer.json()["data"] == {"count": 3}
    assert len(program.receiver.received) == 6


async def test_endpoints_are_paused_when_all_access_to_the_account_ends(
    service: Service, ada: Client, program: OrganizerProgram
) -> None:
    await service.database.transact(lambda tx: accounts.end_access(tx, ada.id))
    await service.run_sql(
        "insert into webhook_messages (tenant_id, type, subject, data)"
        " select tenant_id, 'event.created', 'event 1', '{}' from webhook_endpoints"
    )

    assert await program.deliver() == 0
    assert await service.run_sql("select status from webhook_endpoints") == [("paused",)]


async def test_endpoints_of_a_stranger_are_deleted_when_the_owner_of_the_address_ends_it(
    service: Service, programs: OrganizerPrograms
) -> None:
    stranger, ada = await service.organizer(is_proved=False), await service.organizer()
    ended, other = await programs.add(stranger), await programs.add(ada)
    for organizer in (stranger, ada):
        await organizer.create_event()
    await fan_all_out(service.database)
    await stranger.create_event()

    await service.database.transact(lambda tx: end_stranger(tx, stranger.id))

    await deliver(service.database)
    assert (ended.receiver.types, other.receiver.types) == ([], ["event.created"])
    assert await service.run_sql("select tenant_id from webhook_endpoints") == [(ada.id,)]
    assert await service.run_sql("select tenant_id from webhook_messages") == [(ada.id,)]
    for table in ("webhook_subjects", "webhook_deliveries", "webhook_attempts"):
        assert await service.run_sql(f"select endpoint_id from {table}") == [(other.endpoint["id"],)], table


@pytest.mark.parametrize("ending", ["delete", "pause"])
async def test_an_endpoint_that_ends_during_its_turn_gets_nothing_more(
    service: Service, ada: Client, program: OrganizerProgram, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """The messages that were read before still come: here one."""
    monkeypatch.setattr(sending, "MESSAGES_PER_READ", 1)
    for _ in range(3):
        await ada.create_event()
    await fan_all_out(service.database)
    send_batch = DeliveryWork._send_batch  # pyright: ignore[reportPrivateUsage]

    async def send_and_end(work: DeliveryWork, *arguments: Any) -> Any:
        results = await send_batch(work, *arguments)
        if ending == "delete":
            await ada.delete(program.path)
        else:
            await change(ada, program.path, active=False)
        return results

    monkeypatch.setattr(DeliveryWork, "_send_batch", send_and_end)
    await deliver(service.database)

    assert program.receiver.types == ["event.created"]


async def test_deleting_an_endpoint_ends_what_waits_for_it(
    service: Service, ada: Client, program: OrganizerProgram
) -> None:
    await ada.create_event()

    assert (await ada.delete(program.path)).status_code == 204
    assert await deliver(service.database) == 0
    assert (await ada.get(program.path)).status_code == 404
