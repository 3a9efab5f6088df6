"""The holder of a link about a registration can request another link, which goes to the address itself."""

from tests.events.pages.own_data import ask_for_own_data
from tests.events.pages.own_registration import own_path, register_and_settle
from tests.helpers.event_visitor import Visitor, field_value, page_state, page_text
from tests.helpers.events_service import Service


async def links_sent(service: Service) -> list[str]:
    rows = await service.run_sql("select recipient from mails where kind = 'own_data' order by id")
    return [recipient for (recipient,) in rows]


async def test_the_link_to_the_data_is_sent_to_the_address_and_not_shown(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [address] = await register_and_settle(service, ada, event, "ann")
    own_page_response = await Visitor(service).http.get(address)
    assert f'href="{address.removeprefix("http://events.test")}/data"' in own_page_response.text

    page = await ask_for_own_data(service, address)

    assert (page.status_code, page_state(page)) == (200, "sent")
    assert await links_sent(service) == ["ann@example.com"]
    assert "/people/" not in page.text
    assert "ann" not in page_text(page).lower()


async def test_opening_the_page_sends_no_link(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [address] = await register_and_settle(service, ada, event, "ann")

    for method in ("GET", "HEAD"):
        assert (await Visitor(service).http.request(method, f"{address}/data")).status_code == 200

    assert await links_sent(service) == []


async def test_at_most_one_link_an_hour_is_sent_however_many_registrations_there_are(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    [first] = await register_and_settle(service, ada, await ada.create_event(), "ann")
    [second] = await register_and_settle(service, ben, await ben.create_event(), "ann")

    for address in (first, second, first):
        assert page_state(await ask_for_own_data(service, address)) == "sent"
    assert await links_sent(service) == ["ann@example.com"]
    await service.run_sql("update users set data_link_at = data_link_at - interval '61 minutes'")
    await ask_for_own_data(service, second)

    assert await links_sent(service) == ["ann@example.com"] * 2


async def test_a_person_who_stopped_the_mails_still_gets_the_link_to_the_data(service: Service) -> None:
    ada = await service.organizer()
    [address] = await register_and_settle(service, ada, await ada.create_event(), "ann")
    await Visitor(service).http.post(f"{address}/unsubscribe")

    await ask_for_own_data(service, address)

    assert await links_sent(service) == ["ann@example.com"]


async def test_a_form_without_its_own_token_sends_no_link(service: Service) -> None:
    ada = await service.organizer()
    ann, ben = await register_and_settle(service, ada, await ada.create_event(), "ann", "ben")
    http = Visitor(service).http
    of_another = field_value(await http.get(f"{ben}/data"), "token")
    of_cancelling = field_value(await http.get(f"{ann}/cancel"), "token")

    for fields in ({}, {"token": "x"}, {"token": of_another}, {"token": of_cancelling}):
        page = await http.post(f"{ann}/data", data=fields)
        assert (page.status_code, page_state(page)) == (422, "old")
    good = {"token": field_value(await http.get(f"{ann}/data"), "token")}
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert (await http.post(f"{ann}/data", data=good, headers=headers)).status_code == 403

    assert await links_sent(service) == []


async def test_a_stale_or_guessed_address_sends_no_link(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [address] = await register_and_settle(service, ada, event, "ann")
    http = Visitor(service).http
    token = field_value(await http.get(f"{address}/data"), "token")
    await ada.delete(f"/api/registrations/{event['id']}/{address.split('-')[1]}")

    for answer in (await http.get(f"{address}/data"), await http.post(f"{address}/data", data={"token": token})):
        assert (answer.status_code, page_state(answer)) == (410, "gone")
    assert (await http.get("/registrations/1-aaaaaaaa-1-" + "0" * 32 + "/data")).status_code == 404
    assert await links_sent(service) == []


async def test_the_answer_does_not_reveal_whether_the_address_is_that_of_an_organizer(service: Service) -> None:
    await service.organizer(email="ann@example.com")
    ada = await service.organizer()
    event = await ada.create_event()
    ben, ann = await register_and_settle(service, ada, event, "ben", "ann")

    of_ann, of_ben = [page_text(await ask_for_own_data(service, address)) for address in (ann, ben)]
    assert of_ann.replace("a•••@", "b•••@") == of_ben
    assert await links_sent(service) == ["ann@example.com", "ben@example.com"]


async def test_the_page_that_sends_a_link_to_the_data_is_in_german_too(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await register_and_settle(service, ada, event, "ann")

    page = await ask_for_own_data(service, await own_path(service, event["id"], "ann@example.com"), language="de")

    assert "Postfach prüfen" in page_text(page)
    assert await service.run_sql("select arguments->>'language' from mails where kind = 'own_data'") == [("de",)]
