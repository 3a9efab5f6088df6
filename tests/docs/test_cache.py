"""A real cache in front of the service answers what docs/cache.md says, and nothing that belongs to one person."""

import re
import subprocess
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import httpx2
import pytest

from tests.docs.proxies import HOSTS, PROXY_ADDRESS, Proxy, Services, data_of, is_listening, nginx
from tests.helpers.certificates import Authority
from tests.helpers.data_directories import wait_until
from tests.helpers.databases import clone
from tests.helpers.events_service import event_fields
from tests.helpers.installed_programs import program
from tests.helpers.processes import Process, port_that_stays_free

GERMAN = ("de", "de-DE,de;q=0.9,en;q=0.5", "en;q=0.4,de;q=0.9")
ENGLISH = ("", "en", "en-GB,en;q=0.9,de;q=0.8", "fr-FR,fr;q=0.9", "*", "de;q=0.3,en;q=0.9")
PEOPLE = 8
REQUESTS_EACH = 45
MAX_AGE_SECONDS = 5.0
"""Seconds after which everybody sees a change: `s-maxage` and `stale-while-revalidate`."""


class CachedService(NamedTuple):
    """A cache in front of a process of events, with two organizers, and an event and a queue of the first.

    client     returns a client of the cache
    keys       the API keys of the organizers
    """

    events: Process
    client: Callable[[], AbstractContextManager[httpx2.Client]]
    keys: Sequence[str]
    event: dict[str, Any]
    queue: dict[str, Any]

    @property
    def page(self) -> str:
        """The path of the page of the event."""
        return httpx2.URL(self.event["public_url"]).path

    @contextmanager
    def signed_in(self, number: int) -> Generator[httpx2.Client]:
        """A client with the API key of an organizer."""
        with self.client() as client:
            client.headers["X-API-Key"] = self.keys[number]
            yield client

    def shows(self, words: str, path: str = "") -> bool:
        with self.client() as client:
            return words in client.get(path or self.page).text

    def shows_in_time(self, words: str) -> bool:
        """Whether a change that was made just now shows as soon as the headers promise."""
        changed_at = time.monotonic()
        wait_until(lambda: self.shows(words))
        return time.monotonic() < changed_at + MAX_AGE_SECONDS + 1

    def reached(self, *operations: str) -> int:
        """How many requests of these operations have reached the service."""
        metrics = httpx2.get(f"{self.events.url}/metrics").text
        names = "|".join(operations)
        counts = re.findall(
            rf'^holdfast_requests_total{{operation="(?:{names})",.*}} ([\d.e+]+)$', metrics, re.MULTILINE
        )
        return int(sum(map(float, counts)))


@pytest.fixture(scope="module")
def cached_service(template_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CachedService]:
    program("nginx")  # before the service is started
    directory = tmp_path_factory.mktemp("cache")
    authority, port = Authority(directory), port_that_stays_free()
    authority.issue(*HOSTS.values())
    with pytest.MonkeyPatch.context() as environment, clone(template_url) as url:
        environment.setenv("TRUSTED_PROXIES", PROXY_ADDRESS)
        events = Process(url, directory)
        services = Services(events, events)
        command = nginx(services, directory, port, directory / "server.pem")
        with (directory / "cache.log").open("w") as log:
            running = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory)
        try:
            wait_until(lambda: running.poll() is not None or is_listening(port))
            assert running.poll() is None, (directory / "cache.log").read_text()
            proxy = Proxy(services, port, PROXY_ADDRESS, authority.believed(), directory / "server.pem")
            yield scene(events, lambda: proxy.client("events"))
        finally:
            running.terminate()
            running.wait(timeout=30)
            events.kill()


def scene(events: Process, connect: Callable[[], AbstractContextManager[httpx2.Client]]) -> CachedService:
    with connect() as client:
        keys = list[str]()
        for name in ("Ada", "Ben"):
            fields = {"name": f"{name} Events", "email": f"{name}@example.com", "slug": f"{name.lower()}-events"}
            made = data_of(client.post("/api/organizers/register", json={"organizer": fields}), 201)
            keys.append(made["api_key"]["key"])
        client.headers["X-API-Key"] = keys[0]
        event = data_of(client.post("/api/events", json={"event": event_fields(capacity=1)}), 201)
        fields = {"title": "Sale", "release_rate": 1, "token_ttl_minutes": 5, "target_url": "https://a.example/"}
        queue = data_of(client.post("/api/queues", json={"queue_event": fields}), 201)
    return CachedService(events, connect, keys, event, queue)


def test_a_crowd_reaches_the_service_once_a_second(cached_service: CachedService) -> None:
    shared = {
        "event_page": cached_service.page,
        "organizer_page": "/organizers/ada-events",
        "framed_form": f"/events/{cached_service.event['id']}/embed",
        "waiting_room_progress": f"/queues/{cached_service.queue['id']}/progress",
        "organizer_feed": "/organizers/ada-events/events.rss",
    }

    # They come in many languages, with cookies of their own.
    def look(number: int) -> None:
        with cached_service.client() as visitor:
            visitor.headers["Cookie"] = f"waiting_room_{cached_service.queue['id']}={str(number) * 43}; theme=dark"
            for turn in range(REQUESTS_EACH):
                accepted = (*GERMAN, *ENGLISH)[turn % 9]
                path = [*shared.values()][(turn // 9) % 5]
                answer = visitor.get(path, headers={"Accept-Language": accepted})
                language = "de" if accepted in GERMAN else "en"
                assert (answer.status_code, answer.headers["content-language"]) == (200, language), (path, accepted)
                assert "set-cookie" not in answer.headers

    began, before = time.monotonic(), cached_service.reached(*shared)
    with ThreadPoolExecutor(PEOPLE) as crowd:
        list(crowd.map(look, range(PEOPLE)))
    took, reached = time.monotonic() - began, cached_service.reached(*shared) - before
    # One request a second for each of five addresses and two languages; two headers have answers of their own.
    assert reached <= 5 * 4 * (took + 1), (reached, took)
    assert reached < PEOPLE * REQUESTS_EACH / 3, (reached, took)

    # That there is no such page is kept for a moment, too.
    with cached_service.client() as client:
        before = cached_service.reached("organizer_page")
        assert {client.get("/organizers/nobody-here").status_code for _ in range(20)} == {404}
        assert cached_service.reached("organizer_page") - before <= 3


def test_answers_that_belong_to_one_person_reach_the_service_each_time(cached_service: CachedService) -> None:
    with cached_service.signed_in(0) as ada, cached_service.signed_in(1) as ben:
        before = cached_service.reached("list_events", "get_event", "waiting_room")
        for _ in range(3):
            ids = [[event["id"] for event in one.get("/api/events").json()["data"]] for one in (ada, ben)]
            assert ids == [[cached_service.event["id"]], []]
            assert [one.get(f"/api/events/{cached_service.event['id']}").status_code for one in (ada, ben)] == [
                200,
                403,
            ]
        room = f"/queues/{cached_service.queue['id']}"
        cookies = [one.get(room).headers["set-cookie"] for one in (ada, ben)]
        assert len({*cookies}) == 2
        positions = [re.findall(r'id="position">(\d+)<', one.get(room).text) for one in (ada, ben)]
        assert positions == [["1"], ["2"]]
        assert cached_service.reached("list_events", "get_event", "waiting_room") == before + 3 * 4 + 4


def test_a_change_is_seen_in_time_and_what_was_kept_while_the_service_is_down(cached_service: CachedService) -> None:
    with cached_service.signed_in(0) as ada:
        assert cached_service.shows(cached_service.event["title"])
        data_of(ada.patch(f"/api/events/{cached_service.event['id']}", json={"event": {"title": "Watercolours"}}), 200)
        # A page that was told of the change names its moment.
        assert cached_service.shows("Watercolours", f"{cached_service.page}?at=1764153000123")
        assert cached_service.shows_in_time("Watercolours")
        registration = {"registration": {"event_id": cached_service.event["id"], "email": "ann@example.com"}}
        accepted = ada.post("/api/registrations", json=registration).json()
        wait_until(lambda: ada.get(accepted["next"]["url"]).status_code == 200)
        assert cached_service.shows_in_time('data-state="full"')
        data_of(ada.delete(f"/api/events/{cached_service.event['id']}"), 200)
        assert cached_service.shows_in_time("This event is cancelled.")

        cached_service.events.kill()
        too_old = time.monotonic() + MAX_AGE_SECONDS
        wait_until(lambda: time.monotonic() > too_old)
        assert cached_service.shows("This event is cancelled.")
        paths = ("/api/events", f"/queues/{cached_service.queue['id']}")
        assert [ada.get(path).status_code for path in paths] == [503, 503]
