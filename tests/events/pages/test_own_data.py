"""A person downloads and erases their data by the link that was sent to their address."""

import asyncio
import json
from typing import Any

import pytest

from holdfast.events import ownership
from holdfast.events.people import proof
from holdfast.events.people.model import DataLink, path
from holdfast.events.people.proof import EraseOwnData, ExportOwnData, PreviewOwnErasure
from holdfast.kit.contract.caller import stranger
from holdfast.kit.contract.problems import Problem
from holdfast.kit.security.service_secret import Secret
from tests.events.pages.own_data import OwnDataReader, ask_for_own_data, sent_links
from tests.events.pages.own_registration import own_path
from tests.helpers.event_visitor import page_state, page_text
from tests.helpers.events_service import Client, Service
from tests.helpers.people import end_event, erase, list_registrations, mentions, read_all_text, sign_up


async def data_link(service: Service, ada: Client, **fields: object) -> str:
    """Register Ann for an event, and return the path of the link that was sent to her."""
    event = await ada.create_event(**fields)
    await sign_up(service, event, "ann")
    await ask_for_own_data(service, await own_path(service, event["id"], "ann@example.com"))
    return await sent_links(service)


async def is_there(service: Service) -> bool:
    return "ann@example.com" in await read_all_text(service)


async def test_the_own_data_is_downloaded_completely_as_a_file(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    other = await ben.create_event(title="Töpfern")
    await sign_up(service, other, "ann", "bob")
    ann = OwnDataReader(service, await data_link(service, ada))
    await ann.open()

    file = await ann.press("export")

    assert file.status_code == 200
    assert file.headers["content-type"] == "application/json"
    assert file.headers["content-disposition"] == 'attachment; filename="my-data.json"'
    assert file.headers["cache-control"] == "no-store"
    exported = json.loads(file.content)
    assert exported["account"]["email"] == "ann@example.com"
    assert [registration["event"] for registration in exported["registrations"]] == ["Töpfern", "Life drawing"]
    assert not mentions(file.text, "bob")


async def test_erasing_says_first_what_happens_and_needs_a_second_button(service: Service) -> None:
    ada = await service.organizer()
    past = await ada.create_event(title="Last year")
    await sign_up(service, past, "ann")
    await end_event(service, past)
    paid = await ada.create_event(title="<b>Pottery", pricing_mode="fixed", price=1500)
    await ada.register(paid["id"], email="ann@example.com")
    ann = OwnDataReader(service, await data_link(service, ada, title="Life drawing"))
    await ann.open()

    page = await ann.press("erase")

    assert (page.status_code, page_state(page)) == (200, "confirming")
    text = page_text(page)
    for part in ("<b>Pottery", "Life drawing", "One registration stays", "You get no money back", "cannot be undone"):
        assert part in text
    assert "Last year" not in text
    assert await is_there(service)

    done = await ann.press("erase", confirmed="yes")

    assert (done.status_code, page_state(done)) == (200, "erased")
    assert not await is_there(service)
    assert [registration["status"] for registration in await list_registrations(ada, past)] == ["registered"]
    assert await list_registrations(ada, paid) == []


async def test_programs_that_follow_the_link_do_not_use_it_up(service: Service) -> None:
    link = await data_link(service, await service.organizer())
    scanner, ann = OwnDataReader(service, link), OwnDataReader(service, link)
    for method in ("GET", "HEAD"):
        for suffix in ("", "/export", "/erase"):
            answer = await scanner.http.request(method, link + suffix)
            assert answer.status_code == (303 if suffix else 200)
            assert "ann@" not in answer.text

    await ann.open()

    assert (await ann.press("export")).status_code == 200
    assert await is_there(service)


async def test_a_used_link_works_only_for_the_page_that_opened_it(service: Service) -> None:
    link = await data_link(service, await service.organizer())
    ann, finder = OwnDataReader(service, link), OwnDataReader(service, link)
    await ann.open()
    await finder.open()
    assert (await ann.press("export")).status_code == 200

    for answer in (
        await finder.open(),
        await finder.press("export"),
        await finder.press("erase"),
        await finder.press("erase", confirmed="yes"),
    ):
        assert (answer.status_code, page_state(answer)) == (410, "gone")

    assert await is_there(service)
    assert (await ann.press("export")).status_code == 200
    assert page_state(await ann.press("erase", confirmed="yes")) == "erased"


async def test_a_link_used_twice_at_once_downloads_the_data_once(service: Service) -> None:
    link = await data_link(service, await service.organizer())
    both = [OwnDataReader(service, link) for _ in range(2)]
    for reader in both:
        await reader.open()

    answers = await asyncio.gather(*(reader.press("export") for reader in both))

    assert sorted(answer.status_code for answer in answers) == [200, 410]


async def test_a_link_to_the_data_is_valid_for_an_hour(service: Service) -> None:
    link = await data_link(service, await service.organizer())
    user_id, issued, _ = link.rpartition("/")[2].split("-")
    secret = service.database.resources.secret
    # The link names the moment at which it was made, so links of other times are other links.
    for minutes, status in ((59, 200), (61, 410)):
        await service.run_sql(
            "update users set data_link_at = to_timestamp(%(issued)s / 1000000.0) - make_interval(mins => %(minutes)s)"
            " where data_link_at is not null",
            issued=int(issued),
            minutes=minutes,
        )
        older = DataLink(user_id, int(issued) - minutes * 60 * 1_000_000)

        assert (await OwnDataReader(service, path(secret, older)).open()).status_code == status

    for command in (ExportOwnData, PreviewOwnErasure, EraseOwnData):
        with pytest.raises(Problem) as refusal:
            await run(service, command(**older._asdict(), holder=bytes(32)))
        assert refusal.value.status == 404
    assert await is_there(service)


async def run(service: Service, command: ExportOwnData | PreviewOwnErasure | EraseOwnData) -> None:
    """Use a link without a page."""
    work: Any = {ExportOwnData: proof.export, PreviewOwnErasure: proof.preview, EraseOwnData: ownership.erase_own}[
        type(command)
    ]
    await service.database.transact(lambda tx: work(tx, stranger("address 192.0.2.1"), command))


async def test_a_newer_link_to_the_data_ends_the_older_one(service: Service) -> None:
    ada = await service.organizer()
    first = await data_link(service, ada)
    before = OwnDataReader(service, first)
    await before.open()
    await service.run_sql("update users set data_link_at = data_link_at - interval '61 minutes'")
    second = await data_link(service, ada)

    for answer in (await before.press("export"), await before.press("erase", confirmed="yes"), await before.open()):
        assert (answer.status_code, page_state(answer)) == (410, "gone")
    ann = OwnDataReader(service, second)
    await ann.open()
    assert (await ann.press("export")).status_code == 200


async def test_a_guessed_link_to_the_data_downloads_and_erases_nothing(service: Service) -> None:
    link = await data_link(service, await service.organizer())
    user_id, issued, signature = link.rpartition("/")[2].split("-")
    [(other,)] = await service.run_sql("select public_id from users where role = 'organizer'")
    own_link = (await own_path(service, 1, "ann@example.com")).rpartition("/")[2]
    http = OwnDataReader(service, link).http

    for guess in (
        "x",
        "%00",
        own_link,
        f"{other}-{issued}-{signature}",
        f"{user_id}-{int(issued) + 1}-{signature}",
        f"{user_id}-{issued}-{'0' * 32}",
        path(Secret(b"another secret of 32 characters!"), DataLink(user_id, int(issued))).rpartition("/")[2],
    ):
        for suffix in ("", "/export", "/erase"):
            for method in ("GET", "POST"):
                answer = await http.request(method, f"/people/{guess}{suffix}")
                assert answer.status_code == (405 if (method, suffix) == ("POST", "") else 404)
    assert await is_there(service)


async def test_forms_of_other_sites_or_without_their_token_download_and_erase_nothing(service: Service) -> None:
    ada = await service.organizer()
    link = await data_link(service, ada)
    ann = OwnDataReader(service, link)
    await ann.open()

    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        ann.http.headers.update(headers)
        for button in ("export", "erase"):
            assert (await ann.press(button, confirmed="yes")).status_code == 403
        for name in headers:
            del ann.http.headers[name]
    for fields in ({"token": "x"}, {"held": "another"}, {"token": ""}):
        for button in ("export", "erase"):
            answer = await ann.press(button, confirmed="yes", **fields)
            assert (answer.status_code, answer.headers["location"]) == (303, link)

    assert await is_there(service)
    assert (await ann.press("export")).status_code == 200


async def test_a_link_to_the_data_is_gone_after_the_erasure(service: Service) -> None:
    link = await data_link(service, await service.organizer())
    ann = OwnDataReader(service, link)
    await ann.open()
    await ann.press("erase", confirmed="yes")

    for answer in (await ann.press("export"), await ann.press("erase", confirmed="yes"), await ann.open()):
        assert (answer.status_code, page_state(answer)) == (410, "gone")


async def test_a_link_sent_before_the_operator_erased_the_person_is_gone(service: Service) -> None:
    link = await data_link(service, await service.organizer())
    ann = OwnDataReader(service, link)
    await ann.open()

    await erase(service)

    assert page_state(await ann.press("export")) == "gone"
    assert page_state(await ann.open()) == "gone"


async def test_an_organizer_who_opens_the_link_to_the_data_reads_what_to_do_instead(service: Service) -> None:
    await service.organizer(email="ann@example.com")
    ada = await service.organizer()
    link = await data_link(service, ada)
    ann = OwnDataReader(service, link)

    page = await ann.open()

    assert (page.status_code, page_state(page)) == (403, "organizer")
    assert "cancel your events and revoke your keys" in page_text(page)
    assert await is_there(service)


async def test_a_person_who_became_an_organizer_meanwhile_cannot_erase_by_the_link(service: Service) -> None:
    link = await data_link(service, await service.organizer())
    ann = OwnDataReader(service, link)
    await ann.open()
    await service.run_sql(
        "update users set role = 'organizer', slug = 'ann', name = 'Ann', proved_at = now()"
        " where email = 'ann@example.com'"
    )

    for fields in ({}, {"confirmed": "yes"}):
        assert page_state(await ann.press("erase", **fields)) == "organizer"
    assert page_state(await ann.press("export")) == "organizer"

    assert await is_there(service)


async def test_many_registrations_are_listed_in_part(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.events.pages.own_data_pages.MAX_LISTED_REGISTRATIONS", 1)
    ada = await service.organizer()
    for title in ("Life drawing", "Pottery"):
        await sign_up(service, await ada.create_event(title=title), "ann")
    ann = OwnDataReader(service, await data_link(service, ada))
    await ann.open()

    assert "and 2 more" in page_text(await ann.press("erase"))


async def test_the_pages_of_the_own_data_are_in_german_too(service: Service) -> None:
    ann = OwnDataReader(service, await data_link(service, await service.organizer()), language="de")

    opened, confirming = page_text(await ann.open()), page_text(await ann.press("erase"))

    assert "Meine Daten herunterladen" in opened
    assert "Das lässt sich nicht rückgängig machen." in confirming
    assert "Ihre Daten sind gelöscht." in page_text(await ann.press("erase", confirmed="yes"))
