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

from markupsafe import Markup, escape
from msgspec import Struct

from holdfast.events.documents.examples import BODIES, CHANGES, OBJECTS, PARAMETERS, WORDS
from holdfast.events.documents.openapi import answer_schemas, in_words, resolver
from holdfast.events.site import SITE
from holdfast.kit.http.index import Route
from holdfast.kit.pages.site import security_headers
from holdfast.kit.process.discovery import HTML, document
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

TITLES: Mapping[str, str] = {"queues": "Waiting rooms (queues)", "keys": "API keys"}
"""Titles of nouns whose word in addresses is not the one of pages."""

FIRST_CALL = """\
# Register an organizer. The answer has your key.
curl {base_url}/api/organizers/register \\
  -H 'Content-Type: application/json' \\
  -d '{{"organizer": {{"name": "Ada Events",
       "email": "ada@example.com", "slug": "ada-events"}}}}'

# Publish an event. The answer has its id and its public_url.
curl {base_url}/api/events \\
  -H "X-API-Key: $KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{{"event": {{"title": "Life drawing", "body": "Bring a pencil.",
       "datetime": "2031-05-01T18:00:00Z", "capacity": 12,
       "pricing_mode": "free", "price": 0}}}}'

# Register a person. It is stored, and settled in a moment.
curl {base_url}/api/registrations \\
  -H "X-API-Key: $KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{{"registration": {{"event_id": 7, "email": "ben@example.com"}}}}'"""

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


def routes(spec: Spec) -> list[Route]:
    """The routes of the pages, their style sheet and their script. `copy.js` is an asset of the site."""
    headers = {name.decode(): value.decode() for name, value in security_headers() if name != b"cache-control"}
    # Their examples take a tenth of what it takes to build the service: they are made when a visitor opens a page.
    nouns = cache(partial(operations_by_noun, spec))
    names = dict.fromkeys(entry["tags"][0] for methods in spec["paths"].values() for entry in methods.values())
    return [
        document("/docs", lambda: _page(spec, nouns(), "documents/docs_index.html").encode(), HTML, headers),
        *(
            document(f"/docs/{noun}", lambda noun=noun: _noun_page(spec, nouns(), noun), HTML, headers)
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


def _noun_page(spec: Spec, nouns: Nouns, noun: str) -> bytes:
    return _page(spec, nouns, "documents/docs.html", noun=noun).encode()


def _page(spec: Spec, nouns: Nouns, template: str, **values: Any) -> str:
    """A page as HTML. It loads nothing from other servers."""
    return SITE.render(
        template,
        spec=spec,
        base_url=spec["servers"][0]["url"],
        nouns=nouns,
        objects=answer_schemas(spec),
        words=in_words,
        prose=_prose,
        titles=_title,
        meaning=_meaning,
        first_call=FIRST_CALL.format(base_url=spec["servers"][0]["url"]),
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
    content = json.dumps({wrapper: example} if wrapper else example, indent=2) if example else ""
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
        lines.append('-H "X-API-Key: $KEY"')
    if content:
        lines += ["-H 'Content-Type: application/json'", f"-d '{content}'"]
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
        example = {**example, "data": {**example["data"], **changes}}
    return AnswerExample(inner if "$ref" in inner else None, json.dumps(example, indent=2, ensure_ascii=False))


def _title(noun: str) -> str:
    return TITLES.get(noun, noun.capitalize())


def _meaning(name: str, schema: Schema) -> str:
    """What a member or a parameter is, in the words of its schema or else of the examples."""
    return schema.get("description") or WORDS.get(name, "")


def _prose(text: str) -> Markup:
    """A sentence of a docstring as HTML, with `names` as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped first
