"""The reference for people: every operation by noun, with an example that works as printed."""

import json
import re
import time
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest

from holdfast.events.api import OPERATIONS
from holdfast.events.documents import examples, openapi, page
from holdfast.events.documents.examples import BODIES
from holdfast.events.documents.field_words import FIELD_WORDS, MONEY, MONEY_FIELDS, words_of
from holdfast.events.problems import ALL
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import COMMON_PROBLEMS
from holdfast.kit.operations.operation import Operation
from holdfast.kit.webhooks.signing import new_secret, signed_headers
from holdfast.kit.webhooks.verifying import VERIFYING
from tests.events.routed import ROUTED
from tests.helpers.events_service import Service

TAKING_A_BODY = [operation for operation in ROUTED if operation.has_body_fields]
IDS = examples.PARAMETERS
SPEC = openapi.document("Events", "1", "", examples.BASE, OPERATIONS, (*COMMON_PROBLEMS, *ALL))
SCHEMAS = SPEC["components"]["schemas"]


class DocsPage(HTMLParser):
    """A page of HTML: its text, and every address in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("href", "src", "action", "srcset", "data"):
                self.addresses.append(str(value))
            if name == "id":
                self.ids.append(str(value))

    def handle_data(self, data: str) -> None:
        self.text += data


NOUNS = sorted({operation.noun for operation in OPERATIONS})


async def noun_page(service: Service, noun: str) -> str:
    return (await service.http.get(f"/docs/{noun}")).text


@pytest.mark.parametrize("operation", TAKING_A_BODY, ids=[operation.name for operation in TAKING_A_BODY])
def test_the_example_of_every_body_is_accepted(operation: Operation) -> None:
    in_path = {name: IDS[name] for name in operation.path_fields}

    check(operation.command, {**BODIES[operation.name], **in_path})


def test_examples_of_bodies_belong_to_operations_that_take_a_body() -> None:
    assert {*BODIES} == {operation.name for operation in TAKING_A_BODY}


async def test_the_index_names_every_operation_and_leads_to_it_on_the_page_of_its_noun(service: Service) -> None:
    response = await service.http.get("/docs")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    index = DocsPage(response.text)

    for operation in ROUTED:
        assert operation.name in index.ids
        assert f"/docs/{operation.noun}#{operation.name}" in index.addresses
        assert operation.path in index.text
        assert operation.name.replace("_", " ").capitalize().replace("api key", "API key") in index.text
        assert operation.summary.rpartition(",")[2].strip() in index.text
    assert {*NOUNS, "objects"} <= {address.removeprefix("/docs/") for address in index.addresses}


async def test_every_operation_is_on_the_page_of_its_noun_with_its_example(service: Service) -> None:
    for noun in NOUNS:
        operations = [operation for operation in ROUTED if operation.noun == noun]
        text = await noun_page(service, noun)
        parsed_page = DocsPage(text)

        for operation in operations:
            assert operation.name in parsed_page.ids
            assert operation.path in parsed_page.text
            assert operation.summary in parsed_page.text
        assert text.count("curl ") == len(operations)
        assert text.count('rel="prev"') + text.count('rel="next"') in (1, 2)
        assert text.count("<pre tabindex=") >= 2 * len(operations) - 5


async def test_no_page_refers_to_another_host_or_to_what_is_not_there(service: Service) -> None:
    pages = {f"/docs/{noun}": DocsPage(await noun_page(service, noun)) for noun in (*NOUNS, "objects")}
    pages["/docs"] = DocsPage((await service.http.get("/docs")).text)

    for path, parsed_page in pages.items():
        assert {"img", "iframe", "object"}.isdisjoint(parsed_page.tags)
        assert parsed_page.addresses
        for address in parsed_page.addresses:
            parts = urlsplit(address)
            assert parts.netloc == ""
            if parts.fragment and not parts.path.startswith("/console"):
                assert parts.fragment in pages[parts.path or path].ids, (path, address)
        assert not re.search(r"url\(|@import", parsed_page.text)


async def test_the_example_of_an_organizer_registers_one(service: Service) -> None:
    section = (await noun_page(service, "organizers")).split('id="register_organizer"')[1]
    body = re.search(r"-d &#39;(.*?)&#39;</code>", section, re.DOTALL)
    assert body

    answer = await service.anonymous.post("/api/organizers/register", json.loads(body[1].replace("&#34;", '"')))

    assert answer.status_code == 201, answer.text


async def test_the_api_reference_may_not_be_framed_and_loads_only_its_style_and_scripts(service: Service) -> None:
    answer = await service.http.get("/docs")

    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"].startswith("public")
    assert "unsafe" not in policy
    assert (
        answer.text.count("<script") == len(re.findall(r'<script src="/assets/[^"]+" defer></script>', answer.text)) > 0
    )
    styles = re.findall(r"<style[^>]*>(.*?)</style>", answer.text, re.DOTALL)
    assert len(styles) == answer.text.count("<style")
    for style in styles:
        assert f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'" in policy
    for address in re.findall(r'<(?:link[^>]* href|script src)="([^"]+)"', answer.text):
        assert (await service.http.get(address)).status_code == 200


@pytest.mark.parametrize("name", examples.OBJECTS)
def test_the_example_of_an_object_has_its_members_and_fits_its_schema(name: str) -> None:
    schema, example = SCHEMAS[name], examples.OBJECTS[name]

    assert {*example} <= {*schema["properties"]}
    jsonschema.validate(example, {**schema, "components": SPEC["components"]}, jsonschema.Draft202012Validator)


def test_every_object_of_an_answer_has_an_example_of_its_own() -> None:
    written_in_another = {"RegistrationNextStep", "QueueNextStep", "Error"}

    assert {
        name
        for name in openapi.answer_schemas(SPEC)
        if not name.endswith("Page") and name not in {*examples.OBJECTS, *written_in_another}
    } == set(), "OBJECTS in holdfast/events/documents/examples.py"


def test_the_answers_of_operations_fit_their_schemas_and_differ_only_in_members_of_the_object() -> None:
    for operations in page.operations_by_noun(SPEC).values():
        for operation in operations:
            responses = SPEC["paths"][operation.path][operation.method.lower()]["responses"]
            for status, answer in operation.answers.items():
                if answer.example is not None:
                    schema = responses[status]["content"]["application/json"]["schema"]
                    jsonschema.validate(
                        json.loads(answer.example),
                        {**schema, "components": SPEC["components"]},
                        jsonschema.Draft202012Validator,
                    )


def test_the_example_of_an_event_is_true_to_itself_and_to_the_other_examples() -> None:
    event, registration = examples.OBJECTS["Event"], examples.OBJECTS["Registration"]

    assert event["cancelled_at"] is None
    assert event["status"] == "active"
    assert event["registration_count"] < event["capacity"]
    assert event["price"] == event["current_price"] == registration["amount_paid"] > 0
    assert event["payment"] == event["agent"]["payment"]
    assert event["payment"]["event_is_paid"]
    assert event["id"] == registration["event_id"] == examples.PARAMETERS["event_id"]
    assert registration["id"] == f"{registration['event_id']}-{registration['user_id']}"
    assert event["organizer_id"] == examples.OBJECTS["Organizer"]["id"] == examples.OBJECTS["Queue"]["organizer_id"]
    assert {"cancel_event", "create_event"} <= {*examples.CHANGES}


def field_texts() -> dict[str, str]:
    """What the reference says about each field of requests and of answers."""
    texts: dict[str, str] = {}
    for operation in [operation for noun in page.operations_by_noun(SPEC).values() for operation in noun]:
        fields = {parameter["name"]: parameter for parameter in operation.parameters}
        fields |= operation.body["properties"] if operation.body else {}
        for name, schema in fields.items():
            texts[f"{operation.operationId}.{name}"] = words_of(name, schema, *operation.owners)
    for owner, schema in openapi.answer_schemas(SPEC).items():
        for name, field in schema.get("properties", {}).items():
            texts[f"{owner}.{name}"] = words_of(name, field, owner)
    return texts


def test_fields_are_described_with_words_that_its_name_does_not_have() -> None:
    empty = {"a", "an", "the", "of", "its", "it", "is"}

    circular = {
        field: text
        for field, text in field_texts().items()
        if {*re.findall("[a-z]+", text.lower())} <= {*re.findall("[a-z]+", field.lower()), *empty}
    }

    assert circular == {}


def test_amounts_of_money_say_their_unit_with_an_example() -> None:
    texts = {field: text for field, text in field_texts().items() if field.rpartition(".")[2] in MONEY_FIELDS}

    assert len(texts) > 10
    assert [field for field, text in texts.items() if MONEY not in text] == []


def test_words_of_fields_belong_to_fields() -> None:
    fields = {*field_texts()} | {field.rpartition(".")[2] for field in field_texts()}

    assert {*FIELD_WORDS} - fields == set()


async def test_the_reference_is_in_german_but_for_what_the_document_says(service: Service) -> None:
    german = await service.http.get("/docs/events?lang=de")
    english = await service.http.get("/docs/events", headers={"Accept-Language": "en"})

    assert '<html lang="de">' in german.text
    assert "Die Beschreibungen der Operationen und Felder sind auf Englisch." in german.text
    assert "erforderlich" in german.text
    assert 'href="/docs/photos?lang=de"' in german.text
    assert (german.headers["content-language"], english.headers["content-language"]) == ("de", "en")
    assert german.headers["vary"] == "accept-encoding, accept-language"
    assert german.headers["etag"] != english.headers["etag"]


async def test_pages_of_the_reference_lead_to_the_next_one(service: Service) -> None:
    at, visited = "/docs/organizers", list[str]()
    while at not in visited:
        visited.append(at)
        text = (await service.http.get(at)).text
        at = next(iter(re.findall(r'href="([^"]+)" rel="next"', text)), at)

    assert visited[-1] == "/docs/objects"
    assert len(visited) == len(NOUNS) + 1


def test_the_receiver_of_webhooks_on_the_page_takes_what_is_signed_and_nothing_else() -> None:
    program: dict[str, Any] = {}
    exec(VERIFYING, program)
    secret = new_secret("v1")
    headers = signed_headers([secret], "msg_1", int(time.time()), b"{}")

    assert program["is_genuine"](secret, headers, b"{}")
    assert not program["is_genuine"](secret, headers, b"{ }")
    assert not program["is_genuine"](secret, {}, b"{}")
    assert not program["is_genuine"](new_secret("v1"), headers, b"{}")
    late = signed_headers([secret], "msg_1", int(time.time()) - 3600, b"{}")
    assert not program["is_genuine"](secret, late, b"{}")
