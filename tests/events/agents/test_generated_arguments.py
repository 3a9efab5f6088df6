"""Generated arguments, valid or not, are answered as the schema promises or refused in words.

What is refused has changed nothing, and nothing is ever a failure.
"""

import asyncio
import contextlib
import json
from collections.abc import Generator, Iterator
from typing import Any

import httpx2
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from psycopg import sql

from tests.events.agents.samples import ANN, PHOTOS, TOOLS, prepare_organizer
from tests.events.refusal_scene import KINDS, LEAKS, PROCESSOR_KEY, failures_in
from tests.helpers.databases import scratch_database
from tests.helpers.events_service import running_events, unlimited
from tests.helpers.generated import Schema, fits, from_schema
from tests.helpers.photos import key_of
from tests.helpers.processes import running_processes

# What is cancelled, or has no photos left, is of little use to other tools.
LAST = ("remove_event_photo", "cancel_event")
every_tool = pytest.mark.parametrize("tool", sorted(TOOLS, key=lambda tool: LAST.index(tool) if tool in LAST else -1))

PEOPLE = st.sampled_from([ANN, "abcdefgh", "22222222"])
EMAILS = st.sampled_from(["ann@example.com", "ANN@example.com", "new@example.com", "ö@ü.example", "'@\".--;"])
CURRENCIES = st.sampled_from(["USD", "JPY", "XXX", "ZZZ"])
KEYS = st.sampled_from([*PHOTOS, key_of(1, "d"), key_of(2, "a"), "../photos/1/a.jpg"])
ADDRESSES = st.sampled_from(["http://127.0.0.1/a.jpg", "https://[::1]/", "http://a:b@example.com/", "ftp://a/", "//a"])
ZONES = st.sampled_from(["Europe/Berlin", "Etc/GMT+5", "europe/berlin", "localtime", "../UTC", ""])
KNOWN = {"handle": PEOPLE, "user_id": EMAILS, "before": PEOPLE, "ISO 4217": CURRENCIES, "IANA": ZONES}


def known_values(schema: Schema) -> st.SearchStrategy[str] | None:
    """Handles, addresses and currencies, told by their descriptions; keys and URLs, by their bounds."""
    match schema:
        case {"minLength": 1, "maxLength": 300, "description": text} if "shown to" not in text.lower():
            return KEYS
        case {"minLength": 1, "maxLength": 300} if "description" not in schema:
            return KEYS
        case {"minLength": 1, "maxLength": 2000}:
            return ADDRESSES
        case _:
            pass
    return next((texts for sign, texts in KNOWN.items() if sign in schema.get("description", "")), None)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=8), inside, max_size=3),
    max_leaves=8,
)


class ServedAgents:
    """The service in a process of its own, without background work, and all that it stores."""

    def __init__(self, http: httpx2.Client, connection: psycopg.Connection) -> None:
        self.http = http
        self._connection = connection
        tables = connection.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
        rows = [
            sql.SQL("select {} || t.xmin || t::text as row from {} t").format(sql.Literal(name), sql.Identifier(name))
            for (name,) in tables
        ]
        self._digest = sql.SQL("select md5(string_agg(row, '' order by row)) from ({}) as all_rows").format(
            sql.SQL(" union all ").join(rows)
        )
        self.tools: dict[str, Any] = {tool["name"]: tool for tool in self.rpc("tools/list")["result"]["tools"]}
        self._stored = self.digest_of_rows()

    def rpc(self, method: str, **params: Any) -> dict[str, Any]:
        response = self.http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert response.status_code == 200, response.text
        return response.json()

    def call(self, tool: str, arguments: Any) -> dict[str, Any]:
        """What a call comes to; a refusal has no trace of our insides, and has changed nothing."""
        answer = self.rpc("tools/call", name=tool, arguments=arguments)
        # Nobody else writes there, so what was stored after the last call was stored before this one.
        before, self._stored = self._stored, self.digest_of_rows()
        if "error" in answer or answer["result"]["isError"]:
            assert not LEAKS.search(json.dumps(answer, ensure_ascii=False)), answer
            assert self._stored == before
        elif TOOLS[tool].mode.reads:
            assert self._stored == before
        return answer

    def digest_of_rows(self) -> Any:
        """A digest of every row there is."""
        return self._connection.execute(self._digest).fetchone()


@pytest.fixture(scope="module")
def service_process(
    template_url: str, processor_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServedAgents]:
    """The service for all tests of the module; fails at their end if the service has logged a failure."""
    data = tmp_path_factory.mktemp("data")
    with scratch_database(template_url, "generated_arguments") as url:

        async def prepare_key() -> str:
            async with running_events(unlimited(url, data)) as service:
                ada = await prepare_organizer(service)
                # So that no number tried by chance is the id of the key in use.
                await service.run_sql("alter sequence api_keys_id_seq restart with 987654321")
                made = await ada.post("/api/keys", {"api_key": {"name": "Generated"}})
                return made.json()["data"]["key"]

        key = asyncio.run(prepare_key())
        with (
            processor_in_settings(processor_url),
            running_processes(url, data, 1, "--no-background") as (process,),
            httpx2.Client(base_url=process.url, headers={"authorization": f"Bearer {key}"}, timeout=30) as http,
            psycopg.connect(url, autocommit=True) as connection,
        ):
            yield ServedAgents(http, connection)
            (log,) = data.glob("server-*.log")
            assert failures_in(log.read_text().splitlines()) == []


@contextlib.contextmanager
def processor_in_settings(url: str) -> Generator[None]:
    """Processes that start meanwhile have a payment processor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STRIPE_SECRET_KEY", PROCESSOR_KEY)
        patch.setenv("STRIPE_API_BASE", url)
        yield


def generation_settings(count: int) -> settings:
    return settings(
        max_examples=count,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


def required_members(schema: Schema) -> list[str]:
    return schema.get("required", [])


def refusal_of(answer: dict[str, Any]) -> dict[str, Any]:
    """What a tool is refused with, which is of the closed list."""
    refusal = json.loads(answer["result"]["content"][0]["text"])
    assert KINDS[refusal["code"]].status < 500, refusal
    assert refusal["message"]
    assert refusal["hint"]
    assert refusal["retryable"] is (refusal["code"] == "registration_pending")
    return refusal


@every_tool
def test_arguments_that_fit_the_schema_are_answered_as_promised_or_refused_in_words(
    service_process: ServedAgents, tool: str
) -> None:
    about = service_process.tools[tool]

    @generation_settings(50)
    @given(from_schema(about["inputSchema"], known_values))
    def answered(arguments: dict[str, Any]) -> None:
        answer = service_process.call(tool, arguments)
        assert "result" in answer, answer
        if answer["result"]["isError"]:
            refusal_of(answer)
        else:
            assert fits(about["outputSchema"], answer["result"]["structuredContent"])

    answered()


@every_tool
def test_an_argument_that_does_not_fit_the_schema_is_refused_by_name(service_process: ServedAgents, tool: str) -> None:
    schema = service_process.tools[tool]["inputSchema"]
    names = st.sampled_from([*schema["properties"]]) | st.text(max_size=20) if schema["properties"] else st.text()

    @generation_settings(30)
    @given(from_schema(schema, known_values), names, ANYTHING)
    def named(arguments: dict[str, Any], name: str, value: Any) -> None:
        spoilt = {**arguments, name: value}
        # A refusal repeats the name that was sent, which says nothing of our insides.
        assume(not fits(schema, spoilt) and not LEAKS.search(name))
        # For what is optional null means absent.
        assume(value is not None or name not in schema["properties"] or name in required_members(schema))
        refusal = refusal_of(service_process.call(tool, spoilt))
        assert refusal["code"] == "validation_failed"
        assert name in refusal["errors"]

    named()


@every_tool
def test_a_missing_argument_is_refused_by_name(service_process: ServedAgents, tool: str) -> None:
    schema = service_process.tools[tool]["inputSchema"]

    @generation_settings(20)
    @given(from_schema(schema, known_values), st.sets(st.sampled_from(required_members(schema) or [""])))
    def named(arguments: dict[str, Any], missing: set[str]) -> None:
        assume(missing - {""})
        refusal = refusal_of(
            service_process.call(tool, {name: value for name, value in arguments.items() if name not in missing})
        )
        assert missing <= refusal["errors"].keys()

    if required_members(schema):
        named()
    else:
        assert "result" in service_process.call(tool, {})


@every_tool
def test_arguments_that_are_no_object_are_a_protocol_error(service_process: ServedAgents, tool: str) -> None:
    @generation_settings(20)
    @given(ANYTHING.filter(lambda value: not isinstance(value, dict | None)))
    def is_protocol_error(arguments: Any) -> None:
        assert service_process.call(tool, arguments)["error"]["code"] == -32602

    is_protocol_error()
