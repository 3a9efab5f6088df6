"""Every refusal has one shape, a status that fits, and a code to branch on."""

from typing import Any

import pytest

from holdfast.events.settings import Settings
from tests.contract.requirements import requirement
from tests.contract.shapes import failing_fields, refusal
from tests.helpers.events_service import Service, event_fields, running_events

JSON = {"Content-Type": "application/json"}


@requirement("errors.envelope", "errors.bad-request")
@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b"{'event': {}}", "invalid_json"),
        (b'{"event": {}} {}', "invalid_json"),
        (b'{"event": NaN}', "invalid_json"),
        (b'{"event": {"title": "\xff"}}', "invalid_json"),
        (b'{"event": {"title": "\\ud800"}}', "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b"[]", "bad_request"),
        (b'"event"', "bad_request"),
        (b"null", "bad_request"),
        (b"1", "bad_request"),
    ],
)
async def test_a_body_that_cannot_be_understood_is_a_bad_request(service: Service, content: bytes, code: str) -> None:
    ada = await service.organizer()

    created = await ada.post("/api/events", content=content, headers=JSON)
    registered = await ada.post("/api/registrations", content=content, headers=JSON)

    assert refusal(created) == (400, code)
    assert refusal(registered) == (400, code)


@requirement("errors.envelope", "errors.bad-request")
async def test_a_query_that_cannot_be_understood_is_a_bad_request(service: Service) -> None:
    ada = await service.organizer()

    assert refusal(await ada.get("/api/events?limit=%ff")) == (400, "bad_request")


@requirement("errors.envelope", "errors.validation")
@pytest.mark.parametrize("body", [{}, {"event": None}, {"event": []}, {"event": "Life drawing"}, {"events": {}}])
async def test_a_body_without_its_object_is_a_validation_failure(service: Service, body: dict[str, Any]) -> None:
    ada = await service.organizer()

    assert "event" in failing_fields(await ada.post("/api/events", body))


@requirement("errors.validation")
async def test_every_failing_field_is_named_with_its_messages(service: Service) -> None:
    ada = await service.organizer()
    fields = event_fields(title=1, capacity=0, currency="XXX", latitude=91, nonsense=True)

    assert failing_fields(await ada.post("/api/events", {"event": fields})) == {
        "title",
        "capacity",
        "currency",
        "latitude",
        "nonsense",
    }


@requirement("errors.validation")
@pytest.mark.parametrize("name", ["title", "body", "address", "location_name"])
async def test_a_text_that_cannot_be_stored_is_a_validation_failure(service: Service, name: str) -> None:
    ada = await service.organizer()

    response = await ada.post("/api/events", {"event": event_fields(**{name: "nothing\x00more"})})

    assert failing_fields(response) == {name}


@requirement("errors.validation")
@pytest.mark.parametrize("name", ["price", "capacity", "waitinglist_capacity", "recurrence_interval"])
@pytest.mark.parametrize("value", [2**31, 2**63, 10**30, -(2**63) - 1])
async def test_a_number_too_large_to_store_is_a_validation_failure(service: Service, name: str, value: int) -> None:
    ada = await service.organizer()
    fields = event_fields(pricing_mode="free", **{name: value})

    assert failing_fields(await ada.post("/api/events", {"event": fields})) == {name}


@requirement("errors.envelope", "errors.not-found")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/events/4711", None),
        ("PATCH", "/api/events/4711", {"event": {"title": "Portraits"}}),
        ("DELETE", "/api/events/4711", None),
        ("GET", "/api/events/4711/price_history", None),
        ("GET", "/api/registrations/4711/abcdefgh", None),
        ("PATCH", "/api/registrations/4711/abcdefgh", {"registration": {"amount_paid": 1}}),
        ("DELETE", "/api/registrations/4711/abcdefgh", None),
        ("DELETE", "/api/keys/4711", None),
    ],
)
async def test_a_missing_resource_is_answered_with_404(service: Service, method: str, path: str, body: Any) -> None:
    organizer, admin = await service.organizer(), await service.admin()

    assert refusal(await organizer.request(method, path, body)) == (404, "not_found")
    assert refusal(await admin.request(method, path, body)) == (404, "not_found")


@requirement("errors.not-found")
@pytest.mark.parametrize("id", ["0", "-1", "abc", "99999999999999999999", "%00", "ä", "null"])
async def test_an_id_that_nothing_can_have_is_not_found(service: Service, id: str) -> None:
    ada = await service.organizer()
    paths = [f"/api/events/{id}", f"/api/events/{id}/price_history", f"/api/registrations/{id}/abcdefgh"]

    assert [refusal(await ada.get(path)) for path in paths] == [(404, "not_found")] * 3
    assert refusal(await ada.delete(f"/api/keys/{id}")) == (404, "not_found")


@requirement("errors.not-found")
@pytest.mark.parametrize("spelling", ["{}.0", "{}e0", "+{}", "0{}", "{}%20", "%20{}", "{}_0"])
async def test_an_id_in_another_spelling_is_answered_with_404(service: Service, spelling: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [key] = (await ada.get("/api/keys")).json()["data"]

    assert refusal(await ada.get(f"/api/events/{spelling.format(event['id'])}")) == (404, "not_found")
    assert refusal(await ada.delete(f"/api/keys/{spelling.format(key['id'])}")) == (404, "not_found")


@requirement("errors.envelope", "errors.not-found")
@pytest.mark.parametrize("path", ["/api/nothing", "/api/events/1/nothing", "/api/organizers/1", "/apis"])
async def test_an_address_that_leads_nowhere_is_not_found(service: Service, path: str) -> None:
    ada = await service.organizer()

    assert refusal(await ada.get(path)) == (404, "not_found")
    assert refusal(await service.anonymous.post(path, {})) == (404, "not_found")


@requirement("errors.envelope")
@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/api/events", {"GET", "HEAD", "POST"}),
        ("PUT", "/api/events/1", {"GET", "HEAD", "PATCH", "DELETE"}),
        ("GET", "/api/organizers/register", {"POST"}),
        ("POST", "/api", {"GET", "HEAD", "OPTIONS"}),
    ],
)
async def test_a_method_that_an_address_does_not_answer_is_refused(
    service: Service, method: str, path: str, allowed: set[str]
) -> None:
    response = await service.anonymous.request(method, path)

    assert refusal(response) == (405, "method_not_allowed")
    assert set(response.headers["Allow"].split(", ")) == allowed


@requirement("errors.envelope")
async def test_a_body_that_is_not_json_is_refused(service: Service) -> None:
    ada = await service.organizer()

    response = await ada.post("/api/events", data={"title": "Life drawing"})

    assert refusal(response) == (415, "unsupported_media_type")


@requirement("errors.envelope")
async def test_a_body_that_is_too_large_is_refused(service: Service) -> None:
    ada = await service.organizer()

    response = await ada.post("/api/events", {"event": event_fields(body="x" * 1_100_000)})

    assert refusal(response) == (413, "payload_too_large")


@requirement("errors.envelope")
async def test_refusals_of_authentication_and_scope_have_the_envelope(service: Service) -> None:
    ada, eve = await service.organizer(), await service.organizer()
    event = await ada.create_event()

    assert refusal(await service.anonymous.get("/api/events")) == (401, "missing_api_key")
    assert refusal(await eve.get(f"/api/events/{event['id']}")) == (403, "forbidden")


@requirement("errors.envelope", "errors.rate-limit")
async def test_a_request_over_the_rate_limit_is_answered_with_retry_after(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"registrations_per_minute": 1})) as service:
        ada = await service.organizer()
        body = {"registration": {"event_id": 1, "email": "ann@example.com"}}
        await ada.post("/api/registrations", body)

        response = await ada.post("/api/registrations", body)

        assert refusal(response) == (429, "rate_limited")
        assert int(response.headers["Retry-After"]) == response.json()["retry_after"] > 0


@requirement("errors.envelope", "errors.unavailable")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/events", None),
        ("GET", "/api/events/1", None),
        ("POST", "/api/events", {"event": event_fields()}),
        ("POST", "/api/registrations", {"registration": {"event_id": 1, "email": "ann@example.com"}}),
        ("GET", "/api/registrations/1/abcdefgh", None),
        ("DELETE", "/api/keys/1", None),
        (
            "POST",
            "/api/organizers/register",
            {"organizer": {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events"}},
        ),
    ],
)
async def test_a_service_without_its_database_is_answered_with_503(
    own_service: Service, method: str, path: str, body: Any
) -> None:
    ada = await own_service.organizer()
    await own_service.database.pool.close()

    response = await ada.request(method, path, body)

    assert refusal(response) == (503, "service_unavailable")
    assert int(response.headers["Retry-After"]) == response.json()["retry_after"] > 0
