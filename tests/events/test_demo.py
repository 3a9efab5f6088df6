"""The example data of `holdfast up`: four events, three with drawn photos, and a waiting room for the fourth."""

import io
from functools import partial
from hashlib import sha256

import httpx2
import pytest
from PIL import Image

from holdfast_demo.data import events
from holdfast_demo.data.photos import HEIGHT, WIDTH, draw_photo
from tests.helpers.events_service import Service

PHOTOS = ("studio", "drawing", "concert")


@pytest.fixture
async def addresses(service: Service) -> dict[str, str]:
    _, addresses = await service.database.transact(partial(events.begin, account_id="acct_demo"))
    await service.settle()
    return dict(addresses)


@pytest.mark.parametrize("name", PHOTOS)
def test_a_photo_is_the_same_each_time_it_is_drawn(name: str) -> None:
    content = draw_photo(name)

    with Image.open(io.BytesIO(content)) as picture:
        assert (picture.format, picture.size) == ("JPEG", (WIDTH, HEIGHT))
    assert draw_photo(name) == content


async def test_demo_events_have_photos_of_their_own(service: Service, addresses: dict[str, str]) -> None:
    digests: set[str] = set()
    for name in ("event page", "card payment", "one seat left"):
        page = (await service.http.get(addresses[name])).text
        [photo] = [part.split('"')[0] for part in page.split('<meta property="og:image" content="')[1:]]
        file = await service.http.get(httpx2.URL(photo).path)
        assert file.headers["content-type"] == "image/jpeg"
        digests.add(sha256(file.content).hexdigest())

    assert len(digests) == 3


async def test_one_event_is_free_one_paid_and_one_nearly_full(service: Service, addresses: dict[str, str]) -> None:
    pages = {name: (await service.http.get(path)).text for name, path in addresses.items() if "/events/" in path}

    assert "Open studio evening" in pages["event page"]
    assert "€12.50" in pages["card payment"]
    assert "1 seat left" in pages["one seat left"]
    assert await service.run_sql("select from mails") == []


async def test_the_waiting_room_leads_to_the_event_that_it_names(service: Service, addresses: dict[str, str]) -> None:
    [(title, target, event_id)] = await service.run_sql(
        "select queues.title, queues.target_url, events.id from queues join events on events.queue_id = queues.id"
    )
    page = f"/organizers/demo-organizer/events/{event_id}"

    guarded = await service.http.get(page)
    open_page = await service.http.get(addresses["event page"])

    assert httpx2.URL(target).path == f"/events/{event_id}/released"
    assert f'<h1 dir="auto">{title}</h1>' in guarded.text
    assert [f'href="{addresses["waiting room"]}"' in answer.text for answer in (guarded, open_page)] == [True, False]


async def test_the_demo_data_is_stored_once(service: Service, addresses: dict[str, str]) -> None:
    keys, again = await service.database.transact(partial(events.begin, account_id="acct_demo"))

    assert keys is None
    assert {name: path for name, path in again if name != "organizer"} == {
        name: path for name, path in addresses.items() if name != "organizer"
    }
    assert await service.run_sql("select count(*) from events") == [(4,)]
