"""The pages of API keys: made once, shown once, revoked after a question, and never those of others."""

import pytest

from holdfast.events.settings import Settings
from tests.events.console.organizer_scene import KEY_PATTERN, create_key, hidden_field, open_organizer_scene
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.form_browser import token


async def ids(client: Client) -> list[int]:
    return [key["id"] for key in (await client.get("/api/keys")).json()["data"]]


async def test_a_key_is_made_shown_once_and_works(service: Service) -> None:
    scene = await open_organizer_scene(service)

    answer = await create_key(scene, "Ticket machine")

    [key] = KEY_PATTERN.findall(answer.text)
    assert (await Client(service.http, key).get("/api/events")).status_code == 200
    listed = await scene.page("/console/agents")
    assert "Ticket machine" in listed
    assert f"{key[:8]}…" in listed
    assert KEY_PATTERN.findall(listed) == []


async def test_a_form_for_a_key_sent_twice_makes_one_key(service: Service) -> None:
    scene = await open_organizer_scene(service)
    form_page = await scene.browser.get("/console/agents")
    form = {"token": token(form_page), "once": hidden_field(form_page, "once"), "name": "Ticket machine"}

    first, second = [await scene.browser.http.post("/console/agents/keys/new", data=form) for _ in range(2)]
    third = await scene.browser.http.post("/console/agents/keys/new", data={**form, "name": "Another one"})

    assert KEY_PATTERN.findall(first.text) == KEY_PATTERN.findall(second.text)
    assert KEY_PATTERN.findall(third.text) != KEY_PATTERN.findall(first.text)
    assert len(await ids(scene.ada)) == 3


async def test_a_key_is_revoked_after_a_question(service: Service) -> None:
    scene = await open_organizer_scene(service)
    [key] = KEY_PATTERN.findall((await create_key(scene, "Ticket machine")).text)
    [_, id] = await ids(scene.ada)

    question = await scene.page(f"/console/agents/keys/{id}/revoke")
    before = await Client(service.http, key).get("/api/events")
    done = await scene.browser.send(f"/console/agents/keys/{id}/revoke")

    assert "“<bdi>Ticket machine</bdi>”" in question
    assert before.status_code == 200
    assert (done.status_code, done.headers["location"]) == (303, "/console/agents")
    assert (await Client(service.http, key).get("/api/events")).status_code == 401
    assert "Ticket machine" not in await scene.page("/console/agents")


async def test_the_page_of_keys_says_when_a_key_was_used(service: Service) -> None:
    scene = await open_organizer_scene(service)
    unused = await scene.page("/console/agents")
    await scene.ada.get("/api/events")

    used = await scene.page("/console/agents")

    assert "UTC</time>. Not used yet." in unused
    assert "Not used yet." not in used
    assert "UTC</time>. Last used" in used


async def test_the_use_of_a_key_is_stored_once_an_hour(service: Service) -> None:
    ada = await service.organizer()

    async def noted(since: str) -> bool:
        await service.run_sql("update api_keys set used_at = now() - %(since)s::interval", since=since)
        await service.run_sql("select pg_notify('holdfast', 'api_keys ')")
        await service.wait_for_notices()
        await ada.get("/api/events")
        [(recent,)] = await service.run_sql("select used_at > now() - interval '1 minute' from api_keys")
        return recent

    assert not await noted("50 minutes")
    assert await noted("70 minutes")


async def test_a_key_that_is_locked_can_be_used(service: Service) -> None:
    ada = await service.organizer()
    async with service.database.pool.connection() as connection, connection.transaction():
        await connection.execute("select from api_keys for update")

        answer = await ada.get("/api/events")

    assert answer.status_code == 200
    assert await service.run_sql("select used_at from api_keys") == [(None,)]


async def test_keys_of_another_organizer_are_neither_shown_nor_revoked(service: Service) -> None:
    scene = await open_organizer_scene(service)
    [theirs] = await ids(scene.bob)

    page = await scene.page("/console/agents")
    question = await scene.browser.get(f"/console/agents/keys/{theirs}/revoke")
    sent = await scene.post(f"/console/agents/keys/{theirs}/revoke")

    assert str(scene.bob.key)[:8] not in page
    assert (question.status_code, sent.status_code) == (404, 404)
    assert question.text == sent.text
    assert (await scene.bob.get("/api/events")).status_code == 200


async def test_no_key_is_made_for_another_organizer(service: Service) -> None:
    scene = await open_organizer_scene(service)

    await create_key(scene, "Mine", user_id=str(scene.bob.id), organizer_id=str(scene.bob.id))

    assert len(await ids(scene.bob)) == 1
    assert len(await ids(scene.ada)) == 2


async def test_a_form_of_another_site_or_session_changes_no_keys(service: Service) -> None:
    scene = await open_organizer_scene(service)
    [mine] = await ids(scene.ada)
    stranger = await scene.browser.http.post("/console/agents/keys/new", data={"token": "1-x", "name": "Theirs"})

    answers = [
        stranger,
        await scene.foreign("/console/agents/keys/new", name="Theirs", once="x" * 22),
        await scene.foreign(f"/console/agents/keys/{mine}/revoke"),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert await ids(scene.ada) == [mine]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "Enter a name, such as"),
        ("x" * 101, "100"),
        ("a\x00b", "NUL"),
        ("   ", "Enter a name, such as"),
    ],
)
async def test_an_invalid_name_of_a_key_has_its_message_beside_it(service: Service, name: str, message: str) -> None:
    scene = await open_organizer_scene(service)

    answer = await create_key(scene, name)

    assert (answer.status_code, message in answer.text) == (422, True)
    assert 'aria-invalid="true"' in answer.text
    assert len(await ids(scene.ada)) == 1


async def test_the_name_of_a_key_is_escaped(service: Service) -> None:
    scene = await open_organizer_scene(service)

    answer = await create_key(scene, '<script>alert("1")</script>')

    for page in (answer.text, await scene.page("/console/agents")):
        assert "<script>alert" not in page
        assert "<bdi>&lt;script&gt;alert" in page


@pytest.mark.parametrize("id", ["0", "-1", "x", "9" * 19, "1%00", "1'--", "01"])
async def test_an_id_that_cannot_exist_is_no_page(service: Service, id: str) -> None:
    scene = await open_organizer_scene(service)

    question, sent = (
        await scene.browser.get(f"/console/agents/keys/{id}/revoke"),
        await scene.post(f"/console/agents/keys/{id}/revoke"),
    )

    assert (question.status_code, sent.status_code) == (404, 404)
    assert len(await ids(scene.ada)) == 1


async def test_an_organizer_at_the_limit_of_keys_reads_that_one_must_be_revoked(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"keys_per_organizer": 1})) as service:
        scene = await open_organizer_scene(service)

        answer = await create_key(scene, "One more")

        assert (answer.status_code, 'value="One more"' in answer.text) == (422, True)
        assert "You have the maximum number of keys." in answer.text


async def test_keys_made_here_count_among_those_of_the_api(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"keys_per_hour": 2})) as service:
        scene = await open_organizer_scene(service)
        body = {"api_key": {"name": "From a program"}}
        by_api = [(await scene.ada.post("/api/keys", body)).status_code for _ in range(2)]

        assert by_api == [201, 201]
        assert (await create_key(scene, "From the page")).status_code == 429


async def test_the_pages_of_keys_are_in_german_too(service: Service) -> None:
    scene = await open_organizer_scene(service, language="de")

    assert "Mit einem Schlüssel kann es alles tun, was Sie hier tun können." in await scene.page("/console/agents")
    assert "Kopieren Sie den Schlüssel „" in (await create_key(scene, "Kasse")).text
