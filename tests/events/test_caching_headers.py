"""The caching headers of public answers are those of docs/cache.md."""

import httpx2

from holdfast.kit.http.answers import BRIEF, FEED, IMMUTABLE, LIVE
from tests.events.queues.queue_scene import open_queue
from tests.helpers.events_service import Service

HOUR = "public, max-age=3600"
FIVE_MINUTES = "public, max-age=300"


def cache_control(header: tuple[bytes, bytes]) -> str:
    return header[1].decode()


async def test_an_answer_says_what_caches_may_do_with_it(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    queue = await open_queue(service, ada)
    event_path, organizer_path = f"/events/{event['id']}", f"/organizers/{ada.slug}"
    page = (await service.http.get(event["public_url"])).text
    script = page.partition('<script src="')[2].partition('"')[0]
    expected = {
        cache_control(LIVE): [
            *("/", organizer_path, f"{organizer_path}{event_path}", f"/queues/{queue.id}/progress"),
            *(f"{event_path}/embed", f"{event_path}/calendar.ics"),
        ],
        cache_control(FEED): [f"{organizer_path}/events.ics", f"{organizer_path}/events.rss"],
        cache_control(BRIEF): [
            *("/organizers/nobody", f"{organizer_path}/events/0", "/events/0/embed", "/queues/0/progress"),
        ],
        cache_control(IMMUTABLE): [script],
        HOUR: ["/api", "/llms.txt", "/agents.md", "/docs", "/docs.md", "/openapi.json", "/robots.txt"],
        FIVE_MINUTES: ["/oauth/trusted-auth/jwks.json", "/.well-known/queue-jwks.json"],
        "no-store": [
            *("/healthz", "/readyz", "/metrics", "/nothing", "/docs/", "/sign-in", "/console", "/account", "/mcp"),
            *("/api/events", f"/queues/{queue.id}", f"/queues/{queue.id}/embed", "/queues/0"),
            f"{event_path}/registrations",
            *("/registrations/1-x", "/events/0/stream", "/media/nothing.png", f"{event['public_url']}?queue_token=x"),
        ],
    }

    seen: dict[str, list[str]] = {header: [] for header in expected}
    for path in (path for paths in expected.values() for path in paths):
        answer: httpx2.Response = await service.http.get(path, headers={"Accept": "text/html"})
        seen.setdefault(answer.headers["cache-control"], []).append(path)
        # A cache that stores what sets a cookie would give it to others.
        assert "set-cookie" not in answer.headers or answer.headers["cache-control"] == "no-store"

    assert seen == expected
