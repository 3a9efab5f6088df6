"""The pages of webhooks of organizers: addresses, secrets that are shown once, tests, and what was sent."""

import html
import json
import re

import msgspec
import pytest
from standardwebhooks.webhooks import Webhook

from holdfast.accounts.webhooks import webhook_pages
from holdfast.events.settings import Settings
from holdfast.events.webhooks.messages import MESSAGES
from holdfast.kit.webhooks import endpoints
from holdfast.kit.webhooks.failures import FAILURES
from holdfast.kit.webhooks.verifying import VERIFYING
from tests.events.console.organizer_scene import OrganizerScene, hidden_field, open_organizer_scene
from tests.helpers.events_service import Service, running_events
from tests.helpers.form_browser import main_text
from tests.helpers.webhook_programs import OrganizerProgram, OrganizerPrograms, programs_of
from tests.helpers.webhook_receiver import ReceivedMessage, ReceiverAnswer

SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]+")
PAGE = "/console/webhooks"

programs = pytest.fixture(programs_of)
"""Programs that receive webhooks."""


@pytest.fixture
async def scene(service: Service) -> OrganizerScene:
    return await open_organizer_scene(service)


@pytest.fixture
async def program(scene: OrganizerScene, programs: OrganizerPrograms) -> OrganizerProgram:
    return await programs.add(scene.ada, types=["event.created", "event.cancelled"])


def path_of(program: OrganizerProgram) -> str:
    return f"{PAGE}/{program.endpoint['id']}"


async def test_a_new_address_gets_a_secret_that_is_shown_once(scene: OrganizerScene) -> None:
    form = await scene.browser.get(f"{PAGE}/new")
    fields = {"url": "https://shop.example/hooks", "which": "chosen", "event.full": "on", "ordered": "on"}
    fields["once"] = hidden_field(form, "once")
    made = await scene.browser.send(f"{PAGE}/new", **fields)

    [secret] = {*SECRET.findall(made.text)}
    assert "webhooks listen" not in made.text, "messages to a public address do not come to this machine"
    assert made.status_code == 200
    [endpoint] = (await scene.ada.get("/api/webhook_endpoints")).json()["data"]
    assert (endpoint["url"], endpoint["types"]) == ("https://shop.example/hooks", ["event.full"])
    assert endpoint["ordered"]
    for path in (PAGE, f"{PAGE}/{endpoint['id']}", f"{PAGE}/{endpoint['id']}/edit"):
        page = await scene.page(path)
        assert "https://shop.example/hooks" in page
        assert secret not in page


async def test_a_new_address_can_have_a_public_key_which_stays_on_its_page(scene: OrganizerScene) -> None:
    form = await scene.browser.get(f"{PAGE}/new")
    fields = {"url": "https://shop.example/hooks", "which": "all", "signature": "v1a"}
    made = await scene.browser.send(f"{PAGE}/new", **fields, once=hidden_field(form, "once"))

    [endpoint] = (await scene.ada.get("/api/webhook_endpoints")).json()["data"]
    assert (endpoint["signature"], endpoint["public_key"][:5]) == ("v1a", "whpk_")
    assert "Copy the public key" in made.text
    assert not SECRET.search(made.text)
    for text in (made.text, await scene.page(f"{PAGE}/{endpoint['id']}")):
        assert html.escape(endpoint["public_key"]) in text
    assert "an Ed25519 signature of" in made.text
    question = await scene.page(f"{PAGE}/{endpoint['id']}/secret")
    assert "Create a new key?" in question
    assert not re.search("(old|new|both) secret", question)


async def test_an_unknown_signature_is_refused(scene: OrganizerScene) -> None:
    form = await scene.browser.get(f"{PAGE}/new")
    fields = {"url": "https://shop.example/hooks", "which": "all", "signature": "v2"}

    refusal = await scene.browser.send(f"{PAGE}/new", **fields, once=hidden_field(form, "once"))

    assert refusal.status_code == 422
    assert 'id="signature-note"' in refusal.text


@pytest.mark.parametrize(("port", "option"), [(8787, ""), (8799, " --port 8799")])
async def test_a_secret_for_this_machine_comes_with_the_command_that_listens_there(
    settings: Settings, port: int, option: str
) -> None:
    async with running_events(settings.model_copy(update={"webhook_test_port": port})) as service:
        scene = await open_organizer_scene(service)
        once = hidden_field(await scene.browser.get(f"{PAGE}/new"), "once")
        made = await scene.browser.send(f"{PAGE}/new", url=f"http://127.0.0.1:{port}/", which="all", once=once)

    [secret] = {*SECRET.findall(made.text)}
    assert f"holdfast webhooks listen{option} --secret {secret}" in made.text


async def test_a_form_that_is_sent_twice_makes_one_address_and_shows_the_same_secret(scene: OrganizerScene) -> None:
    form = await scene.browser.get(f"{PAGE}/new")
    fields = {"url": "https://shop.example/", "which": "all", "once": hidden_field(form, "once")}
    pages = [await scene.browser.send(f"{PAGE}/new", **fields) for _ in range(2)]

    assert SECRET.findall(pages[0].text) == SECRET.findall(pages[1].text) != []
    assert len((await scene.ada.get("/api/webhook_endpoints")).json()["data"]) == 1


async def test_mails_about_a_new_address_have_the_language_of_the_form(service: Service) -> None:
    scene = await open_organizer_scene(service, language="de")
    fields = {"url": "https://shop.example/", "which": "all"}
    fields["once"] = hidden_field(await scene.browser.get(f"{PAGE}/new"), "once")

    await scene.browser.send(f"{PAGE}/new", **fields)

    assert await service.run_sql("select language from webhook_endpoints") == [("de",)]


@pytest.mark.parametrize(("port", "note"), [(0, ""), (8787, "For a trial on this machine: http://127.0.0.1:8787/")])
async def test_a_webhook_form_names_the_address_of_a_trial_only_where_it_may_be_used(
    settings: Settings, port: int, note: str
) -> None:
    async with running_events(settings.model_copy(update={"webhook_test_port": port})) as service:
        scene = await open_organizer_scene(service)
        form = await scene.browser.get(f"{PAGE}/new")
        fields = {"url": "http://localhost:8787/", "which": "all", "once": hidden_field(form, "once")}
        refusal = await scene.browser.send(f"{PAGE}/new", **fields)

    for page in (main_text(form), main_text(refusal)):
        assert note in page
        assert ("For a trial" in page) == bool(port)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"url": ""}, "Enter the address of your program, such as https://shop.example/webhooks."),
        (
            {"url": "http://shop.example/"},
            "“Address of your program” must begin with https://, as https://shop.example/webhooks does.",
        ),
        ({"url": "shop.example"}, "must begin with https://, as https://shop.example/webhooks does"),
        ({"url": "http://127.0.0.1:8787/"}, "must begin with https://, as https://shop.example/webhooks does"),
        ({"url": "https://shop.example:8443/"}, "must use the default port"),
        ({"url": "https://10.0.0.1/"}, "“Address of your program” names a host that has no public address."),
        ({"url": "https://shop.example/", "which": "chosen"}, "Choose at least one message, or all."),
    ],
)
async def test_a_form_that_is_refused_says_what_to_enter_and_keeps_what_was_typed(
    scene: OrganizerScene, fields: dict[str, str], reason: str
) -> None:
    form = await scene.browser.get(f"{PAGE}/new")
    refusal = await scene.browser.send(f"{PAGE}/new", **{"which": "all", "once": hidden_field(form, "once"), **fields})

    assert refusal.status_code == 422
    assert reason in main_text(refusal)
    assert f'value="{fields["url"]}"' in refusal.text


async def test_a_test_is_sent_and_stands_in_the_list_with_its_answer(
    scene: OrganizerScene, program: OrganizerProgram
) -> None:
    sent = await scene.browser.send(path_of(program), do="test")
    await program.deliver()

    assert sent.headers["location"] == f"{path_of(program)}?done=test"
    assert program.receiver.types == ["ping"]
    text = main_text(await scene.browser.get(path_of(program)))
    assert "ping" in text
    assert "Delivered" in text
    [message] = program.receiver.received
    assert "Delivered: your program answered with the status 204." in main_text(
        await scene.browser.get(f"{path_of(program)}/messages/{message.id}")
    )


async def test_pages_that_are_looked_at_use_up_no_limit(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"keys_per_hour": 2})) as service:
        scene = await open_organizer_scene(service)
        form = await scene.browser.get(f"{PAGE}/new")
        await scene.browser.send(
            f"{PAGE}/new", url="https://shop.example/", which="all", once=hidden_field(form, "once")
        )

        looks = [(await scene.browser.get(f"{PAGE}/1{path}")).status_code for path in ("", "/secret") for _ in range(3)]
        tests = [(await scene.post(f"{PAGE}/1", do="test")).status_code for _ in range(2)]

    assert looks == [200] * 6
    assert tests == [303, 429]


async def test_a_message_is_shown_with_each_attempt_and_sent_again(
    scene: OrganizerScene, program: OrganizerProgram
) -> None:
    statuses = [500, 0, 204, 204]
    program.receiver.answer = lambda _: ReceiverAnswer(statuses.pop(0))
    await scene.ada.create_event(title="<i>Jazz</i>")
    for _ in range(3):
        await program.deliver()
        await program.pass_pauses()
    message = program.receiver.received[0]
    path = f"{path_of(program)}/messages/{message.id}"

    page = await scene.browser.get(path)
    again = await scene.browser.send(path)
    await program.deliver()

    assert "Your program answered with the status 500." in main_text(page)
    assert "The connection broke off before there was an answer." in main_text(page)
    assert "&lt;i&gt;Jazz" in page.text
    contents = re.findall('<code id="content-of-message">(.*?)</code>', page.text, re.DOTALL)
    assert [json.loads(html.unescape(content)) for content in contents] == [json.loads(message.body)]
    assert again.headers["location"] == f"{path}?done=resend"
    assert [received.id for received in program.receiver.received] == [message.id] * 4


async def test_a_message_says_what_it_waits_for(scene: OrganizerScene, program: OrganizerProgram) -> None:
    async def page_of(message: ReceivedMessage) -> str:
        return main_text(await scene.browser.get(f"{path_of(program)}/messages/{message.id}"))

    program.receiver.answer = lambda _: ReceiverAnswer(500)
    await scene.ada.create_event()
    await program.deliver()
    [message] = program.receiver.received
    later = await page_of(message)
    await program.pass_pauses()
    failing = await page_of(message)
    listed = await scene.page(path_of(program))
    await scene.browser.send(f"{path_of(program)}/pause", action=path_of(program), do="pause")
    paused = await page_of(message)
    await scene.service.run_sql("update webhook_endpoints set status = 'active', failing_since = null")
    due = await page_of(message)

    assert re.search("It is sent [^.i]", later)
    assert "It is sent as soon as your program answers again." in failing
    assert "It waits until the webhook is switched on." in paused
    assert "It is sent in a moment." in due
    [state] = re.findall(r'id="state" data-live>(.*?)</div>', listed, re.DOTALL)
    assert "Failing" in state
    assert "Nothing has been delivered since" in state


async def test_a_webhook_that_fails_says_why_and_what_to_do(scene: OrganizerScene, program: OrganizerProgram) -> None:
    async def state() -> str:
        [state] = re.findall(r'id="state" data-live>(.*?)</div>', await scene.page(path_of(program)), re.DOTALL)
        return " ".join(re.sub("<[^>]*>", " ", state).split())

    statuses = [500, 0, 204, 410]
    program.receiver.answer = lambda _: ReceiverAnswer(statuses.pop(0))
    await scene.ada.create_event()
    states: list[str] = []
    for _ in range(3):
        await program.deliver()
        await program.pass_pauses()
        states.append(await state())
    await scene.ada.create_event()
    await program.deliver()
    states.append(await state())

    assert "Your program answered with the status 500. Today" in states[0]
    assert states[0].endswith(FAILURES["status"].advice)
    assert "The connection broke off before there was an answer. Today" in states[1]
    assert states[1].endswith(FAILURES["broken"].advice)
    assert "Your program answered with the status" not in states[2]
    assert "Your program answered that it wants no more messages (410), so this address was paused." in states[3]


async def test_a_webhook_says_the_newest_reason_also_if_no_message_waits(
    scene: OrganizerScene, program: OrganizerProgram
) -> None:
    statuses = [500, 503]
    program.receiver.answer = lambda _: ReceiverAnswer(statuses.pop(0))
    await scene.ada.create_event()
    await program.deliver()
    await scene.ada.create_event()
    await scene.service.run_sql("update webhook_deliveries set due_at = now() + interval '1 day'")
    await scene.service.run_sql("update webhook_endpoints set leased_until = now(), next_due_at = now()")
    await program.deliver()
    waiting = main_text(await scene.browser.get(path_of(program)))
    await scene.service.run_sql("update webhook_deliveries set status = 'failed', due_at = null, ended_at = now()")
    failed = main_text(await scene.browser.get(path_of(program)))

    for page in (waiting, failed):
        assert "Your program answered with the status 503. Today" in page


async def test_the_manual_of_webhooks_has_the_program_that_verifies_and_every_type(scene: OrganizerScene) -> None:
    manual = await scene.browser.get(f"{PAGE}/receive")

    for page in (PAGE, f"{PAGE}/new"):
        assert f'href="{PAGE}/receive"' in await scene.page(page)
    assert VERIFYING in html.unescape(manual.text)
    examples = re.findall('<code id="message-[^"]*">(.*?)</code>', manual.text, re.DOTALL)
    messages = [json.loads(html.unescape(example)) for example in examples]
    assert [(message["type"], message["data"]) for message in messages] == [
        (type.name, json.loads(msgspec.json.encode(type.example))) for type in MESSAGES
    ]


async def test_an_address_is_changed_paused_activated_and_deleted(
    scene: OrganizerScene, program: OrganizerProgram
) -> None:
    path = path_of(program)
    edited = await scene.browser.send(f"{path}/edit", url=program.receiver.url, which="all")
    assert edited.headers["location"] == f"{path}?done=edit"
    changed = main_text(await scene.browser.get(f"{path}?done=edit"))
    question = main_text(await scene.browser.get(f"{path}/pause"))
    await scene.browser.send(f"{path}/pause", action=path, do="pause")
    assert "Saved." in changed
    assert "What happens during the pause is not sent, not even later." in question
    assert "Paused: what happens now is not sent" in main_text(await scene.browser.get(path))
    await scene.browser.send(path, do="activate")
    [endpoint] = (await scene.ada.get("/api/webhook_endpoints")).json()["data"]
    assert (endpoint["types"], endpoint["status"]) == ([], "active")

    assert "This cannot be undone." in await scene.page(f"{path}/delete")
    await scene.browser.send(f"{path}/delete")

    assert "No webhooks yet." in main_text(await scene.browser.get(PAGE))


async def test_a_new_secret_is_shown_once_and_signs_beside_the_one_before(
    scene: OrganizerScene, program: OrganizerProgram
) -> None:
    made = await scene.browser.send(f"{path_of(program)}/secret")
    await scene.browser.send(path_of(program), do="test")
    await program.deliver()

    [secret] = {*SECRET.findall(made.text)}
    [message] = program.receiver.received
    for present in (secret, program.endpoint["secret"]):
        Webhook(present).verify(message.body, message.headers)


async def test_failed_messages_are_listed_and_all_sent_again(scene: OrganizerScene, program: OrganizerProgram) -> None:
    program.receiver.answer = lambda _: ReceiverAnswer(500)
    for _ in range(3):
        await scene.ada.create_event()
    await program.deliver()
    await scene.service.run_sql("update webhook_deliveries set status = 'failed', due_at = null, ended_at = now()")
    failed = await scene.browser.get(f"{path_of(program)}?delivery=failed")
    assert len({*re.findall("messages/(msg_[0-9]+)", failed.text)}) == 3
    program.receiver.answer = lambda _: ReceiverAnswer()

    resent = await scene.browser.send(f"{path_of(program)}?delivery=failed", action=path_of(program), do="resend")
    assert "3 messages that failed are being sent again." in await scene.page(resent.headers["location"])
    await program.pass_pauses()
    await program.deliver()

    assert "No messages failed." in main_text(await scene.browser.get(f"{path_of(program)}?delivery=failed"))


async def test_more_failed_messages_than_one_press_sends_have_the_button_for_the_others(
    scene: OrganizerScene, program: OrganizerProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "MAX_RESENT", 2)
    for _ in range(3):
        await scene.ada.create_event()
    await program.deliver()
    await scene.service.run_sql("update webhook_deliveries set status = 'failed', due_at = null, ended_at = now()")
    page = f"{path_of(program)}?delivery=failed"

    for text, is_last in (("2 messages that failed are being sent again. They are the oldest.", False), ("1 me", True)):
        resent = await scene.browser.send(page, action=path_of(program), do="resend")
        page = resent.headers["location"]
        page_text = main_text(await scene.browser.get(page))
        assert text in page_text
        assert ("Send all failed messages again" in page_text) == (not is_last)
        assert ("No messages failed." in page_text) == is_last


async def test_a_webhook_says_how_many_messages_wait_and_how_many_failed(
    scene: OrganizerScene, program: OrganizerProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.receiver.answer = lambda _: ReceiverAnswer(500)
    for _ in range(3):
        await scene.ada.create_event()
    await program.deliver()
    await scene.service.run_sql(
        "update webhook_deliveries set status = 'failed', due_at = null, ended_at = now() where number = 1"
        " and message_id in (select min(id) from webhook_messages)"
    )
    monkeypatch.setattr(webhook_pages, "MAX_COUNTED", 2)

    for path in (PAGE, path_of(program)):
        page = await scene.browser.get(path)
        assert "2 or more messages wait · 1 message failed" in main_text(page)
        assert f'href="{path_of(program)}?delivery=failed"' in page.text


async def test_the_messages_of_a_time_are_counted_before_they_are_sent_again(
    scene: OrganizerScene, program: OrganizerProgram
) -> None:
    for _ in range(3):
        await scene.ada.create_event()
    await program.deliver()
    await scene.service.run_sql("update webhook_messages set created_at = '2027-05-01T12:00:00+02:00' where id = 2")
    path = f"{path_of(program)}/resend"
    assert f'href="{path}"' in await scene.page(path_of(program))
    time = "since=2027-05-01T11:59&until=2027-05-01T12:01&zone=Europe/Berlin&which="

    empty_page = main_text(await scene.browser.get(f"{path}?{time}failed"))
    count_page = await scene.browser.get(f"{path}?{time}all")
    fields = {name: hidden_field(count_page, name) for name in ("zone", "after")}
    fields |= {"since": "2027-05-01T11:59", "until": "2027-05-01T12:01", "which": "all"}
    await program.deliver()
    assert len(program.receiver.received) == 3
    resent = await scene.browser.send(f"{path}?{time}all", action=path, **fields)
    await program.deliver()

    assert "No messages in this time" in empty_page
    assert "1 message They are sent" in main_text(count_page)
    assert "1 message is being sent again." in await scene.page(resent.headers["location"])
    assert sorted(message.id for message in program.receiver.received) == ["msg_1", "msg_2", "msg_2", "msg_3"]


async def test_more_messages_of_a_time_than_one_press_sends_are_sent_by_further_presses(
    scene: OrganizerScene, program: OrganizerProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "MAX_RESENT", 2)
    for _ in range(5):
        await scene.ada.create_event()
    await program.deliver()
    path = f"{path_of(program)}/resend"
    fields = {"since": "2026-01-01T00:00", "until": "", "which": "all", "zone": ""}
    page = await scene.browser.get(f"{path}?since=2026-01-01T00:00&which=all")

    for count in ("2 messages or more", "1 message"):
        page = await scene.browser.send(path, **fields, after=hidden_field(page, "after"))
        assert "2 messages are being sent again. There are more" in main_text(page)
        assert count in main_text(page)
    last = await scene.browser.send(path, **fields, after=hidden_field(page, "after"))
    await program.deliver()

    assert last.headers["location"] == f"{path_of(program)}?done=resend_range&count=1"
    assert len(program.receiver.received) == 10


@pytest.mark.parametrize("query", ["since=", "since=yesterday", "since=2027-05-01T11:59&until=soon"])
async def test_a_time_of_messages_that_cannot_be_read_is_refused_with_an_example(
    scene: OrganizerScene, program: OrganizerProgram, query: str
) -> None:
    refusal = await scene.browser.get(f"{path_of(program)}/resend?{query}")

    assert refusal.status_code == 422
    assert "Enter a date and a time, such as 2030-01-31T18:00." in main_text(refusal)


async def test_long_lists_have_pages(scene: OrganizerScene, program: OrganizerProgram) -> None:
    await scene.service.run_sql(
        "insert into webhook_messages (tenant_id, type, subject, data)"
        " select tenant_id, 'event.created', 'event 1', '{}' from webhook_endpoints, generate_series(1, 25)"
    )
    await program.deliver()

    first, second = [await scene.page(path_of(program) + query) for query in ("", "?offset=20")]

    assert "offset=20" in first
    assert len({*re.findall("messages/(msg_[0-9]+)", first + second)}) == 25


async def test_an_address_of_another_organizer_is_not_found(scene: OrganizerScene, programs: OrganizerPrograms) -> None:
    foreign = await programs.add(scene.bob)
    path = path_of(foreign)

    assert (await scene.browser.get(f"{path}/pause")).status_code == 404
    for page in ("", "/edit", "/secret", "/delete", "/resend", "/messages/msg_1"):
        assert (await scene.browser.get(path + page)).status_code == 404
        assert (await scene.post(path + page, do="test", url="https://evil.example/", which="all")).status_code == 404
    assert await scene.service.run_sql("select count(*) from webhook_endpoints where status = 'active'") == [(1,)]


async def test_the_pages_are_in_german_too(service: Service, programs: OrganizerPrograms) -> None:
    scene = await open_organizer_scene(service, language="de")
    program = await programs.add(scene.ada)
    await scene.browser.send(path_of(program), do="test")
    await program.deliver()

    assert "Nachrichten werden" in main_text(await scene.browser.get(path_of(program)))
    assert "Eine Veranstaltung wurde abgesagt." in main_text(await scene.browser.get(f"{PAGE}/new"))
