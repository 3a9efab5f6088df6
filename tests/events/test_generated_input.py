"""Requests generated from our OpenAPI document, good or bad, are answered as the document says."""

import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import httpx2
import hypothesis
import psycopg
import pytest
import requests
import schemathesis
from hypothesis import strategies as st
from schemathesis import GenerationMode, checks
from schemathesis.specs.openapi import checks as openapi_checks

from holdfast.kit.operations.operation import Operation
from tests.events.refusal_scene import failures_in
from tests.events.routed import ROUTED
from tests.helpers.databases import scratch_database
from tests.helpers.events_service import event_fields, queue_fields


@dataclass
class Known:
    """What exists, to ask for in the path and to name in the body."""

    path: dict[str, Any]
    body: dict[str, Any]


@dataclass
class ServedEvents:
    """The service in a process of its own, as operators run it."""

    url: str
    key: str
    document: Any
    known: Mapping[str, Known]


@pytest.fixture(scope="module")
def service_process(template_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedEvents]:
    """The service for all tests of the module; fails at their end if the service has logged a failure."""
    with scratch_database(template_url, "generated") as url:
        environment = {
            **os.environ,
            "EVENTS_DATABASE_URL": url,
            "EVENTS_SECRET_KEY": "a secret that only these tests use",
            "HOLDFAST_DATA_DIR": str(tmp_path_factory.mktemp("data")),
            "API_REGISTRATION_RATE_LIMIT": "1000000",
            "API_PHOTO_UPLOAD_RATE_LIMIT": "1000000",
            "API_ORGANIZER_REGISTER_RATE_LIMIT": "1000000",
            "API_QUEUE_JOIN_RATE_LIMIT": "1000000",
        }
        holdfast = [sys.executable, "-m", "holdfast", "events"]
        with psycopg.connect(url, autocommit=True) as connection:
            # So that no number tried by chance is the id of the key in use.
            connection.execute("alter sequence api_keys_id_seq restart with 987654321")
        create = [*holdfast, "key", "create", "--admin", "--name", "Generated"]
        key = subprocess.run(create, env=environment, check=True, capture_output=True, text=True).stdout.split()[-1]
        serve = [*holdfast, "serve", "--port", "0"]
        with subprocess.Popen(
            serve, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout
            address = next(line for line in process.stdout if "listens on" in line).split()[-1]
            log: list[str] = []
            reader = threading.Thread(target=log.extend, args=[process.stdout])
            reader.start()
            try:
                document = schemathesis.openapi.from_url(f"{address}/openapi.json")
                yield ServedEvents(address, key, document, prepare_service(address, key))
            finally:
                process.terminate()
                reader.join()
            assert failures_in(log) == []


def prepare_service(address: str, key: str) -> Mapping[str, Known]:
    """Put something into the service, and say what each operation can ask for."""
    with httpx2.Client(base_url=address, headers={"X-API-Key": key}) as http:
        organizer = {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events"}
        ada = http.post("/api/organizers/register", json={"organizer": organizer}).json()["data"]["organizer"]["id"]
        fields = event_fields(organizer_id=ada, capacity=1000)
        event_id, lost = (http.post("/api/events", json={"event": fields}).json()["data"]["id"] for _ in range(2))
        person = {"event_id": event_id, "email": "ann@example.com"}
        poll = http.post("/api/registrations", json={"registration": person}).json()["next"]["url"]
        body = {"queue_event": queue_fields(organizer_id=ada)}
        queue, closed = (http.post("/api/queues", json=body).json()["data"]["id"] for _ in range(2))
        http.post(f"/api/queues/{queue}/join", json={"visitor_id": "ann"})
    bodies: dict[str, dict[str, Any]] = {
        "create_api_key": {"user_id": ada},
        "create_event": {"organizer_id": ada, "pricing_mode": "free", "price": 0, "image_keys": []},
        "create_registration": {"event_id": event_id, "user_id": None},
        "create_queue": {"organizer_id": ada, "target_url": "https://shop.example", "ends_at": None},
    }
    ids = {"event_id": event_id, "user_id": poll.rpartition("/")[2], "queue_id": queue, "visitor_id": "ann"}
    known = defaultdict(lambda: Known(ids, {}), {name: Known(ids, body) for name, body in bodies.items()})
    known["cancel_event"] = known["delete_registration"] = Known({**ids, "event_id": lost}, {})
    known["delete_queue"] = Known({"queue_id": closed}, {})
    return known


# Their types are not fully known.
ANSWERS: Any = checks
PROMISES: Any = openapi_checks
KEPT: list[Any] = [
    ANSWERS.not_a_server_error,
    PROMISES.status_code_conformance,
    PROMISES.content_type_conformance,
    PROMISES.response_headers_conformance,
    PROMISES.response_schema_conformance,
]
REFUSED: list[Any] = [*KEPT, PROMISES.negative_data_rejection]
UNHURRIED: list[Any] = list(hypothesis.HealthCheck)


@pytest.mark.parametrize("operation", ROUTED, ids=lambda operation: operation.name)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_a_request_generated_from_the_document_is_answered_as_documented(
    service_process: ServedEvents, operation: Operation, mode: GenerationMode
) -> None:
    known = service_process.known[operation.name]
    documented = service_process.document[operation.path][operation.method]
    expected = REFUSED if mode.is_negative else KEPT

    @hypothesis.settings(max_examples=15, derandomize=True, suppress_health_check=UNHURRIED)
    @hypothesis.given(case=documented.as_strategy(generation_mode=mode), about_what_exists=st.booleans())
    def answer(case: Any, about_what_exists: bool) -> None:
        if mode.is_positive and about_what_exists:
            case.path_parameters |= {name: known.path[name] for name in operation.path_fields if name in known.path}
            fields_of(case.body).update(known.body)
        case.call_and_validate(
            base_url=service_process.url, session=session, headers={"X-API-Key": service_process.key}, checks=expected
        )

    with requests.Session() as session:
        answer()


def fields_of(body: Any) -> dict[str, Any]:
    """The fields inside the wrapper of a generated body; empty when there are none."""
    wrapped = list(cast(dict[str, Any], body).values()) if isinstance(body, dict) else []
    return cast(dict[str, Any], wrapped[0]) if wrapped and isinstance(wrapped[0], dict) else {}
