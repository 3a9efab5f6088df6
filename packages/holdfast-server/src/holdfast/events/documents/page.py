"""The reference for people: the OpenAPI document in the layout of the site, a page for each noun, with examples.

Examples of requests and answers are those of `examples.py`. A script
adds a search, buttons that copy, and forms that send requests with a key. The pages can be read without it.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup, escape
from msgspec import Struct

from holdfast.events.documents.examples import BODIES, CHANGES, OBJECTS, PARAMETERS
from holdfast.events.documents.field_words import words_of
from holdfast.events.documents.openapi import answer_schemas, limits_in_words, resolver, type_in_words
from holdfast.events.site import SITE
from holdfast.kit.contract.messages import translatable
from holdfast.kit.http.index import Route
from holdfast.kit.pages.language import Language
from holdfast.kit.process.discovery import document_page
from holdfast.kit.webhooks.verifying import VERIFYING

Schema = Mapping[str, Any]


def example_of(schema: Schema, resolve: Callable[[Schema], Schema], name: str = "") -> Any:
    """An example value of a schema, for the field `name`. An object of answers has an example of its own."""
    if (reference := schema.get("$ref", "").rpartition("/")[2]) in OBJECTS:
        return OBJECTS[reference]
    schema = resolve(schema)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return None if {"type": "null"} in schema["anyOf"] else example_of(schema["anyOf"][0], resolve, name)
    match schema.get("type"):
        case "object":
            return {
                field: example_of(field_schema, resolve, field)
                for field, field_schema in schema.get("properties", {}).items()
            }
        case "array":
            return [example_of(schema["items"], resolve, name)]
        case "integer":
            return schema.get("minimum", 0)
        case "boolean":
            return True
        case kind:
            return "…" if kind == "string" else None


Spec = Mapping[str, Any]

OBJECTS_PAGE = "objects"
"""The last part of the path of the page about objects, beside those of nouns."""

TITLES: Mapping[str, str] = {
    "organizers": translatable("Organizers"),
    "users": translatable("Users"),
    "keys": translatable("API keys"),
    "events": translatable("Events"),
    "pricing": translatable("Price history"),
    "photos": translatable("Photos"),
    "registrations": translatable("Registrations"),
    "payments": translatable("Payouts"),
    "queues": translatable("Waiting rooms"),
    "webhooks": translatable("Webhooks"),
    OBJECTS_PAGE: translatable("Objects"),
}
"""The titles of pages, by the noun in their addresses."""

LEADS: Mapping[str, str] = {
    "organizers": translatable(
        "An organizer is the account that publishes events. Register one first: the answer has your API key."
    ),
    "users": translatable("Users are people who registered for events, and organizers."),
    "keys": translatable("A program sends an API key with each request. Give each program a key of its own."),
    "events": translatable(
        "An event has a title, a start and a number of seats. Once an event is published, people can register."
    ),
    "pricing": translatable(
        "The price of a dynamic event moves with demand, within the limits that you set for the event. This operation "
        "lists each change."
    ),
    "photos": translatable(
        "Add a photo by its public address, or send a file in three steps: 1. presign an upload, 2. PUT the file, "
        "3. add the photo by its key."
    ),
    "registrations": translatable(
        "A registration asks for a seat. The answer 202 means that the registration is stored. Moments later, its "
        "status says whether the person has a seat."
    ),
    "payments": translatable(
        "Before people can pay for an event, its organizer sets up payouts. Refunds are made in the console, on the "
        "event's Money page."
    ),
    "queues": translatable(
        "A waiting room lets visitors in at a steady pace, to an event or to another site. In the API it is called a "
        "queue."
    ),
    "webhooks": translatable(
        "A webhook sends your program a message when something happens. Create an endpoint, then verify each message "
        "that comes."
    ),
    OBJECTS_PAGE: translatable("The objects that answers have. What a request takes is described with its operation."),
}
"""What the noun of a page is, and what to do first."""

FIRST_CALLS: Mapping[str, str] = {
    "register_organizer": translatable("1. Register an organizer. The answer has your key."),
    "create_event": translatable("2. Publish an event. The answer has its id and its page."),
    "create_registration": translatable("3. Register a person. The answer says where the result will be."),
}
"""The operations with which a reader begins, and what to know about each."""

ASSETS = ("documents/docs.css", "documents/docs.js")


class AnswerExample(Struct):
    """The schema of an answer, if it is an object of the reference, and an example. None: there is no body."""

    type: Spec | None = None
    example: str | None = None


class DocumentedOperation(Struct):
    """An operation as the page shows it.

    request    an example as a shell command
    content    the body of the example as JSON; empty if it has none
    """

    operationId: str  # noqa: N815 - the word of OpenAPI
    method: str
    path: str
    description: str
    public: bool
    parameters: list[Spec]
    wrapper: str | None
    body: Spec | None
    request: str
    content: str
    answers: dict[str, AnswerExample]
    refusals: dict[str, str]

    @property
    def owners(self) -> Sequence[str]:
        """What has the fields of its request: the operation, and the object that it answers with."""
        answered = (answer.type["$ref"].rpartition("/")[2] for answer in self.answers.values() if answer.type)
        return (self.operationId, *answered)

    @property
    def title(self) -> str:
        """What it is called."""
        return self.operationId.replace("_", " ").capitalize().replace("api key", "API key")

    @property
    def summary(self) -> str:
        """What it does, in a line, without words that repeat the title; may be empty."""
        first = self.description.split("\n\n")[0]
        if not first.lower().startswith(self.title.lower()):
            return first
        rest = first[len(self.title) :].lstrip(" ,.:")
        return rest[:1].upper() + rest[1:]

    @property
    def searched(self) -> str:
        """The words by which the index finds it, each once."""
        fields: list[str] = [*self.body["properties"]] if self.body else []
        parts: list[str] = [
            self.operationId,
            self.path,
            self.description,
            *fields,
            *(field["name"] for field in self.parameters),
        ]
        return " ".join(sorted({*re.findall(r"\w+", " ".join(parts).lower())}))


Nouns = Mapping[str, Sequence[DocumentedOperation]]


def routes(openapi: str) -> list[Route]:
    """The routes of the pages, their style sheet and their script. `copy.js` is an asset of the site.

    openapi    the OpenAPI document as JSON
    """
    paths: Spec = msgspec.json.decode(openapi)["paths"]
    names = dict.fromkeys(entry["tags"][0] for methods in paths.values() for entry in methods.values())

    # The document as objects takes 2 MB, and examples a tenth of what it takes to build the service: both are made when
    # a visitor opens a page.
    @cache
    def reference() -> tuple[Spec, Nouns]:
        spec: Spec = msgspec.json.decode(openapi)
        return spec, operations_by_noun(spec)

    return [
        document_page("/docs", lambda language: _page(*reference(), language, "documents/docs_index.html")),
        *(
            document_page(f"/docs/{noun}", partial(_noun_page, reference, [*names, OBJECTS_PAGE], noun))
            for noun in (*names, OBJECTS_PAGE)
        ),
        *SITE.assets(*ASSETS),
    ]


def operations_by_noun(spec: Spec) -> Nouns:
    """The operations of each noun, in the order of the table."""
    nouns: dict[str, list[DocumentedOperation]] = {}
    for path, methods in spec["paths"].items():
        for method, entry in methods.items():
            nouns.setdefault(entry["tags"][0], []).append(_documented(spec, method.upper(), path, entry))
    return nouns


def _noun_page(reference: Callable[[], tuple[Spec, Nouns]], names: Sequence[str], noun: str, language: Language) -> str:
    """The page of a noun, with the names of the pages before and after it."""
    number = names.index(noun)
    return _page(
        *reference(),
        language,
        "documents/docs.html",
        noun=noun,
        before=names[number - 1] if number else None,
        after=names[number + 1] if number + 1 < len(names) else None,
    )


def _page(spec: Spec, nouns: Nouns, language: Language, template: str, **values: Any) -> str:
    """A page as HTML. It loads nothing from other servers."""
    addresses = {
        operation.operationId: language.at(f"/docs/{noun}#{operation.operationId}")
        for noun, operations in nouns.items()
        for operation in operations
    }
    return SITE.render(
        template,
        language=language,
        spec=spec,
        base_url=spec["servers"][0]["url"],
        nouns=nouns,
        objects=dict(sorted(answer_schemas(spec).items())),
        examples={name: _indented(example) for name, example in OBJECTS.items()},
        messages={name: _message(entry["post"]) for name, entry in spec["webhooks"].items()},
        type_in_words=type_in_words,
        limits_in_words=limits_in_words,
        prose=partial(_prose, addresses),
        titles=TITLES,
        leads=LEADS,
        first_calls=FIRST_CALLS,
        meaning=words_of,
        verifying=VERIFYING,
        **values,
    )


def _documented(spec: Spec, method: str, path: str, entry: Spec) -> DocumentedOperation:
    resolve = resolver(spec)
    wrapper, body = None, None
    if "requestBody" in entry:
        body = resolve(entry["requestBody"]["content"]["application/json"]["schema"])
        (name, inner), *more = body["properties"].items()
        if not more and "$ref" in inner:
            wrapper, body = name, resolve(inner)
    responses = entry["responses"].items()
    example = BODIES.get(entry["operationId"])
    content = _indented({wrapper: example} if wrapper else example) if example else ""
    return DocumentedOperation(
        entry["operationId"],
        method,
        path,
        entry["description"],
        public="security" in entry,
        parameters=entry["parameters"],
        wrapper=wrapper,
        body=body,
        request=_request(spec, method, path, entry, content),
        content=content,
        answers={
            status: _answer(spec, response, CHANGES.get(entry["operationId"], {}))
            for status, response in responses
            if int(status) < 400
        },
        refusals={status: response["description"] for status, response in responses if int(status) >= 400},
    )


def _request(spec: Spec, method: str, path: str, entry: Spec, content: str) -> str:
    """An example request with this body as a shell command with curl."""
    values = {parameter["name"]: _value(parameter) for parameter in entry["parameters"] if parameter["required"]}
    locations = {parameter["name"]: parameter["in"] for parameter in entry["parameters"]}
    query = urlencode({name: value for name, value in values.items() if locations[name] == "query"})
    address = spec["servers"][0]["url"] + re.sub(r"{(\w+)}", lambda name: str(values[name[1]]), path)
    # With a body, curl sends a POST by itself.
    method_option = "" if method == ("POST" if content else "GET") else f"-X {method} "
    lines = [f"curl {method_option}'{address}{'?' if query else ''}{query}'"]
    if "security" not in entry:
        lines.append("-H 'X-API-Key: YOUR_KEY'")
    if content:
        body = content.replace("\n", "\n  ")
        lines += ["-H 'Content-Type: application/json'", f"-d '{body}'"]
    return " \\\n  ".join(lines)


def _value(parameter: Spec) -> Any:
    name = parameter["name"]
    return PARAMETERS[name] if name in PARAMETERS else example_of(parameter["schema"], lambda schema: schema, name)


def _answer(spec: Spec, response: Spec, changes: Spec) -> AnswerExample:
    if "content" not in response:
        return AnswerExample()
    schema = response["content"]["application/json"]["schema"]
    inner = schema.get("properties", {}).get("data", schema)
    example = example_of(schema, resolver(spec))
    if changes:
        data: Any = example["data"]
        # The example of a list has one item.
        example["data"] = [{**data[0], **changes}] if isinstance(data, list) else {**data, **changes}
    return AnswerExample(inner if "$ref" in inner else None, _indented(example))


def _message(entry: Spec) -> tuple[str, str]:
    """What a message of a webhook says, and an example."""
    return entry["summary"], _indented(entry["requestBody"]["content"]["application/json"]["example"])


def _indented(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _prose(addresses: Mapping[str, str], text: str) -> Markup:
    """A sentence of a docstring as HTML, with `names` as code. `addresses`: those of operations, which become links."""

    def code(name: re.Match[str]) -> str:
        address = addresses.get(name[1])
        return f'<a href="{address}"><code>{name[1]}</code></a>' if address else f"<code>{name[1]}</code>"

    return Markup(re.sub(r"`([^`]+)`", code, str(escape(text))))  # noqa: S704 - escaped first
