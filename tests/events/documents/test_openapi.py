"""The OpenAPI document is valid and complete, and describes the real answers of the service."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from holdfast.events.api import OPERATIONS
from holdfast.events.problems import ALL
from holdfast.events.queues import release
from holdfast.events.settings import Settings
from holdfast.events.webhooks.messages import MESSAGES
from holdfast.kit.contract.problems import COMMON_PROBLEMS
from holdfast.kit.operations.operation import Operation
from tests.events.refusal_scene import PROCESSOR_KEY
from tests.events.routed import ROUTED
from tests.helpers.events_service import Client, Service, event_fields, queue_fields
from tests.helpers.photos import upload
from tests.helpers.pictures import picture
from tests.helpers.webhook_receiver import deliver


class Document:
    """The document, and the operations that have kept to it so far."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.checked: set[str] = set()

    def entries(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for path, methods in self.spec["paths"].items():
            for method, entry in methods.items():
                yield method.upper(), path, entry

    def operation(self, method: str, path: str) -> Operation:
        """The operation that answers a request."""
        return next(
            operation
            for operation in sorted(ROUTED, key=lambda operation: len(operation.path_fields))
            if operation.method == method
            and re.fullmatch(re.sub(r"{\w+}", "[^/]+", operation.path), urlsplit(path).path)
        )

    def keeps(self, response: httpx2.Response) -> Any:
        """The answer, which has the status, the type and the shape that are documented for it."""
        operation = self.operation(response.request.method, response.request.url.path)
        answers = self.spec["paths"][operation.path][operation.method.lower()]["responses"]
        documented = answers[str(response.status_code)]
        if "content" not in documented:
            assert response.content == b""
            self.checked.add(operation.name)
            return None
        assert list(documented["content"]) == [response.headers["content-type"]]
        schema = {**documented["content"]["application/json"]["schema"], "components": self.spec["components"]}
        checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
        jsonschema.validate(response.json(), schema, jsonschema.Draft202012Validator, format_checker=checker)
        if response.is_success:
            self.checked.add(operation.name)
        return response.json()


@pytest.fixture
def settings(settings: Settings, processor_url: str) -> Settings:
    """With a payment processor, so that every operation can answer."""
    return settings.model_copy(update={"stripe_key": PROCESSOR_KEY, "stripe_api": processor_url})


@pytest.fixture
def service(own_service: Service) -> Service:
    """A service under these settings."""
    return own_service


@pytest.fixture
async def document(service: Service) -> Document:
    response = await service.http.get("/openapi.json")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    return Document(response.json())


async def test_the_document_is_valid_openapi_3_1(document: Document) -> None:
    assert document.spec["openapi"].startswith("3.1.")
    validate(document.spec, cls=OpenAPIV31SpecValidator)


async def test_every_operation_of_the_table_is_in_the_document_exactly_once(document: Document) -> None:
    entries = list(document.entries())

    assert sorted((method, path) for method, path, _ in entries) == sorted(
        (operation.method, operation.path) for operation in ROUTED
    )
    assert sorted(entry["operationId"] for _, _, entry in entries) == sorted(operation.name for operation in ROUTED)


async def test_every_operation_says_what_it_does_takes_and_answers(
    document: Document, subtests: pytest.Subtests
) -> None:
    by_name = {operation.name: operation for operation in OPERATIONS}
    for method, path, entry in document.entries():
        with subtests.test(method=method, path=path):
            operation = by_name[entry["operationId"]]
            assert entry["summary"]
            assert entry["description"].startswith(entry["summary"])
            assert (entry.get("security") == []) == operation.public
            assert ("401" in entry["responses"]) != operation.public
            body_fields = set(operation.command.__struct_fields__) - set(operation.path_fields)
            assert ("requestBody" in entry) == (operation.has_body_fields and bool(body_fields))
            assert [parameter["name"] for parameter in entry["parameters"] if parameter["in"] == "path"] == list(
                operation.path_fields
            )
            assert [status for status in entry["responses"] if status.startswith("2")] == [str(operation.status)]


async def test_every_parameter_and_every_field_is_bounded_or_explained(
    document: Document, subtests: pytest.Subtests
) -> None:
    for method, path, entry in document.entries():
        for parameter in entry["parameters"]:
            with subtests.test(method=method, path=path, parameter=parameter["name"]):
                choices = parameter["schema"].get("anyOf", [parameter["schema"]])
                names = {name for choice in choices for name in choice}
                assert names & {"minimum", "maximum", "maxLength", "pattern", "enum"}
                if parameter["in"] == "header":
                    # It has no default: without it a request is not repeatable.
                    assert parameter["required"] is False
                    assert parameter["description"]
                else:
                    assert parameter["required"] == ("default" not in parameter["schema"])


async def test_no_description_has_an_indented_line(document: Document) -> None:
    """In Markdown such a line would be code. Sentences for maintainers are comments beside the docstring."""
    schemas = document.spec["components"]["schemas"]
    described = {name: schema.get("description", "") for name, schema in schemas.items()}
    described |= {f"{method} {path}": entry["description"] for method, path, entry in document.entries()}

    assert [name for name, text in described.items() if re.search(r"^[ \t]", text, re.MULTILINE)] == []


async def test_every_code_of_the_closed_list_is_named(document: Document) -> None:
    codes = document.spec["components"]["schemas"]["Error"]["properties"]["code"]["enum"]

    assert codes == sorted({kind.code for kind in (*COMMON_PROBLEMS, *ALL)})


async def test_every_schema_of_the_document_is_used(document: Document) -> None:
    used = set(re.findall(r'#/components/schemas/([^"\']+)', str(document.spec)))

    assert used == set(document.spec["components"]["schemas"])


async def test_the_address_of_the_service_is_named(service: Service, document: Document) -> None:
    assert document.spec["servers"] == [{"url": "http://events.test"}]


async def test_every_answer_has_the_shape_that_is_documented_for_it(service: Service, document: Document) -> None:
    keeps = document.keeps
    organizer = {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events", "password": "correct horse"}
    registered = keeps(await service.anonymous.post("/api/organizers/register", {"organizer": organizer}))["data"]
    ada, admin = Client(service.http, registered["api_key"]["key"]), await service.admin()

    for client, fields in ((ada, {}), (admin, {"user_id": registered["organizer"]["id"]})):
        key = keeps(await client.post("/api/keys", {"api_key": {"name": "One more", **fields}}))["data"]
        assert len(keeps(await client.get("/api/keys"))["data"]) >= 2
        keeps(await client.delete(f"/api/keys/{key['id']}"))

    paid = {"price": 2500, "pricing_mode": "fixed", "currency": "EUR", "recurrence_frequency": "months"}
    dynamic = {"price": 2500, "pricing_mode": "dynamic", "min_price": 1000, "max_price": 9000}
    place = {"address": "1 High Street", "location_name": "Studio", "latitude": 51.5, "longitude": -0.1}
    for fields in ({}, paid, dynamic, place):
        event = keeps(await ada.post("/api/events", {"event": event_fields(**fields)}))["data"]
        assert keeps(await ada.get(f"/api/events/{event['id']}"))["data"] == event
        keeps(await ada.get(f"/api/events/{event['id']}/price_history"))
    keeps(await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 1, "waitinglist_capacity": 1}}))

    await _photos(service, document, ada, event["id"])
    assert keeps(await ada.post("/api/stripe/onboarding_link"))["data"]["onboarding_complete"] is False

    people = [{"event_id": event["id"], "email": f"{name}@example.com"} for name in ("ann", "ben", "cal")]
    polls = [keeps(await ada.post("/api/registrations", {"registration": person}))["next"]["url"] for person in people]
    assert keeps(await ada.get(polls[0]))["code"] == "registration_pending"
    await service.settle()
    assert [keeps(await ada.get(poll)).get("code") for poll in polls] == [None, None, "registration_rejected"]
    assert keeps(await ada.get("/api/registrations"))["pagination"]["count"] == 2
    assert keeps(await ada.get("/api/registrations?limit=1"))["pagination"]["has_more"] is True
    keeps(await ada.patch(polls[0], {"registration": {"status": "waitlisted", "amount_paid": 5}}))
    assert keeps(await ada.patch(polls[0], {"registration": {"status": "registered"}}))["code"] == "event_full"
    keeps(await ada.delete(polls[1]))

    for client in (ada, admin):
        for path in ("/api/events", "/api/users", "/api/organizers", "/api/registrations"):
            assert keeps(await client.get(path))["pagination"]["count"] >= 1
    assert keeps(await ada.delete(f"/api/events/{event['id']}"))["data"]["status"] == "cancelled"
    assert keeps(await ada.post("/api/registrations", {"registration": people[0]}))["code"] == "event_cancelled"

    await _queues(service, document, ada)
    await _webhooks(service, document, ada)

    unrequested = {operation.name for operation in ROUTED} - document.checked
    assert not unrequested, f"This test requests every operation: request {sorted(unrequested)} here too."


async def _webhooks(service: Service, document: Document, ada: Client) -> None:
    keeps = document.keeps
    fields = {"url": "https://shop.example.com/webhooks", "signature": "v1a"}
    endpoint = keeps(await ada.post("/api/webhook_endpoints", {"webhook_endpoint": fields}))["data"]
    path = f"/api/webhook_endpoints/{endpoint['id']}"
    assert keeps(await ada.get("/api/webhook_endpoints"))["data"] == [endpoint] == [keeps(await ada.get(path))["data"]]
    keeps(await ada.patch(path, {"webhook_endpoint": {"ordered": True}}))
    assert keeps(await ada.post(f"{path}/rotate_secret"))["data"]["public_key"] != endpoint["public_key"]
    keeps(await ada.post(f"{path}/ping"))
    await deliver(service.database)
    [delivery] = keeps(await ada.get(f"{path}/deliveries"))["data"]
    message = f"{path}/messages/{delivery['message_id']}"
    [attempt] = keeps(await ada.get(f"{message}/attempts"))["data"]
    assert (delivery["status"], attempt["status"]) == ("waiting", None)
    assert keeps(await ada.post(f"{message}/resend"))["data"] == {"count": 1}
    assert keeps(await ada.post(f"{path}/resend", {"since": "2026-01-01T00:00:00Z"}))["data"] == {"count": 0}
    keeps(await ada.delete(path))


async def _photos(service: Service, document: Document, ada: Client, event_id: int) -> None:
    keeps = document.keeps
    photos, png = f"/api/events/{event_id}/photos", picture("image/png")
    wish = {"content_type": "image/png", "content_length": len(png), "filename": "poster.png"}
    keys = [keeps(await ada.post("/api/uploads/presign", wish))["data"]["key"], await upload(service, ada)]
    assert keeps(await ada.post(photos, {"key": keys[0]}))["code"] == "validation_failed"
    assert keeps(await ada.post(photos, {"key": keys[1]}))["data"]["key"] == keys[1]
    keeps(await ada.put(f"{photos}/primary", {"key": keys[1]}))
    assert len(keeps(await ada.get(f"/api/events/{event_id}"))["data"]["image_urls"]) == 1
    keeps(await ada.delete(photos, params={"key": keys[1]}))


async def _queues(service: Service, document: Document, ada: Client) -> None:
    keeps = document.keeps
    queue = keeps(await ada.post("/api/queues", {"queue_event": queue_fields(max_queue_size=1)}))["data"]
    path = f"/api/queues/{queue['id']}"
    assert keeps(await ada.get("/api/queues"))["data"] == [queue]
    assert keeps(await ada.get(path))["data"] == queue
    poll = keeps(await ada.post(f"{path}/join", {"visitor_id": "ann"}))["next"]["url"]
    assert keeps(await ada.post(f"{path}/join", {"visitor_id": "ben"}))["code"] == "queue_full"
    assert keeps(await ada.get(poll))["status"] == "waiting"
    await service.run_sql("update queues set paced_at = paced_at - interval '1 minute'")
    await release.release_due(service.database)
    token = keeps(await ada.get(poll))["token"]
    assert keeps(await ada.post("/api/queues/verify_token", {"token": token}))["valid"] is True
    assert keeps(await ada.post("/api/queues/verify_token", {"token": "x"}))["valid"] is False
    keeps(await ada.patch(path, {"queue_event": {"active": False}}))
    assert keeps(await ada.post(f"{path}/join", {"visitor_id": "cal"}))["code"] == "queue_inactive"
    keeps(await ada.delete(path))


async def test_every_refusal_has_the_shape_that_is_documented_for_it(service: Service, document: Document) -> None:
    ada, ben = await service.organizer("Ada Events"), await service.organizer("Ben Events")
    event = await ada.create_event()
    path = f"/api/events/{event['id']}"

    answers = [
        await service.anonymous.get(path),
        await ben.get(path),
        await ada.get("/api/events/999"),
        await ada.patch(path, {"event": {"capacity": 0, "colour": "red"}}),
        await ada.patch(path, content=b"{"),
        await ada.patch(path, content=b"{}", headers={"Content-Type": "text/plain"}),
        await ada.patch(path, content=b" " * 2_000_000),
        await ada.get("/api/events?limit=0"),
    ]

    assert [document.keeps(answer)["code"] for answer in answers] == [
        "missing_api_key",
        "forbidden",
        "not_found",
        "validation_failed",
        "invalid_json",
        "unsupported_media_type",
        "payload_too_large",
        "validation_failed",
    ]
    assert document.keeps(answers[3])["errors"].keys() == {"capacity", "colour"}


async def test_no_answer_has_a_member_that_is_not_documented(service: Service, document: Document) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    schemas = document.spec["components"]["schemas"]

    assert set(event) == set(schemas["Event"]["properties"])
    assert set(event["agent"]) == set(schemas["Agent"]["properties"])
    assert set(event["payment"]) == set(schemas["Payment"]["properties"])
    for key in (await ada.get("/api/keys")).json()["data"]:
        assert set(key) == set(schemas["ApiKey"]["properties"])


async def test_the_catalog_names_every_operation(service: Service) -> None:
    catalog = (await service.http.get("/api")).json()

    assert [(endpoint["name"], endpoint["method"], endpoint["path"]) for endpoint in catalog["endpoints"]] == [
        (operation.name, operation.method, operation.path) for operation in ROUTED
    ]


async def test_the_headers_and_members_of_refusals_are_documented(document: Document) -> None:
    for _, _, entry in document.entries():
        for status in {"429", "503"} & entry["responses"].keys():
            assert "Retry-After" in entry["responses"][status]["headers"]
    registration = document.spec["paths"]["/api/registrations/{event_id}/{user_id}"]["get"]["responses"]
    assert "Link" in registration["200"]["headers"]
    verified = document.spec["paths"]["/api/queues/verify_token"]["post"]["responses"]["401"]
    assert "valid" in verified["content"]["application/json"]["schema"]["allOf"][1]["properties"]


async def test_every_example_of_a_message_has_the_shape_that_is_documented_for_it(service: Service) -> None:
    spec = (await service.http.get("/openapi.json")).json()

    assert {*spec["webhooks"]} == {message.name for message in MESSAGES}
    for name, entry in spec["webhooks"].items():
        content = entry["post"]["requestBody"]["content"]["application/json"]
        assert content["example"]["type"] == name
        jsonschema.validate(content["example"], {**content["schema"], "components": spec["components"]})
