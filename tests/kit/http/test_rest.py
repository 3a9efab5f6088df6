"""How the table answers and refuses over HTTP."""

import json
import re

import pytest
from structlog.testing import capture_logs

from holdfast.events.site import SITE
from holdfast.kit.contract.client import address
from tests.events.routed import ROUTED
from tests.helpers.events_service import Client, Service
from tests.kit.raw_requests import code_of, request_directly, with_key


@pytest.fixture
async def ada(service: Service) -> Client:
    return await service.organizer()


# Answers


async def test_an_answer_is_json_with_cache_control_no_store(ada: Client) -> None:
    response = await ada.get("/api/events")

    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert int(response.headers["content-length"]) == len(response.content)


async def test_an_empty_answer_has_no_body_and_no_type(ada: Client) -> None:
    key = (await ada.post("/api/keys", {"api_key": {"name": "One more"}})).json()["data"]

    response = await ada.delete(f"/api/keys/{key['id']}")

    assert (response.status_code, response.content) == (204, b"")
    assert not {"content-type", "content-length"} & set(response.headers)


async def test_an_unexpected_failure_is_logged_with_an_id_and_answered_without_details(
    service: Service, ada: Client
) -> None:
    event = await ada.create_event()
    await service.run_sql("alter table price_changes rename to something_else")

    with capture_logs() as logs:
        response = await ada.get(f"/api/events/{event['id']}/price_history")

    assert code_of(response, 500) == "internal_error"
    assert "price_changes" not in response.text
    failures = [entry for entry in logs if entry["event"] == "request failed"]
    assert [entry["request_id"] for entry in failures] == [response.json()["request_id"]]
    assert "price_changes" in str(failures[0]["exc_info"])


# Keys


async def test_an_api_key_is_accepted_in_either_header(service: Service, ada: Client) -> None:
    for headers in (
        {"X-API-Key": str(ada.key)},
        {"Authorization": f"Bearer {ada.key}"},
        {"Authorization": f"bearer  {ada.key} "},
    ):
        assert (await service.http.get("/api/events", headers=headers)).status_code == 200


async def test_a_request_without_a_key_is_answered_with_401(service: Service, subtests: pytest.Subtests) -> None:
    nothing: list[dict[str, str]] = [
        {},
        {"X-API-Key": ""},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic aGY6aGY="},
    ]
    for headers in nothing:
        with subtests.test(headers=headers):
            response = await service.http.get("/api/events", headers=headers)

            assert code_of(response, 401) == "missing_api_key"
            assert response.headers["www-authenticate"].startswith("Bearer ")


async def test_an_invalid_key_is_answered_with_401(service: Service, subtests: pytest.Subtests) -> None:
    for header in (
        (b"x-api-key", b"hf_" + "é".encode("latin-1") * 43),
        (b"x-api-key", b"\xff\xfe\x80"),
        (b"x-api-key", "🔑".encode()),
        (b"authorization", b"Bearer \xff\xfe\x80"),
        (b"x-api-key", b"hf_" + b"A" * 43),
        (b"x-api-key", b"A" * 60_000),
    ):
        with subtests.test(header=header[:50]):
            response = await service.http.get("/api/events", headers=[header])

            assert code_of(response, 401) == "invalid_api_key"
            assert response.headers["www-authenticate"].startswith("Bearer ")


async def test_the_x_api_key_header_wins_over_a_bearer_token(service: Service, ada: Client) -> None:
    ben = await service.organizer("Ben Events")
    both = await service.http.get(
        "/api/organizers", headers={"X-API-Key": str(ada.key), "Authorization": f"Bearer {ben.key}"}
    )
    wrong = await service.http.get(
        "/api/organizers", headers={"X-API-Key": "wrong", "Authorization": f"Bearer {ben.key}"}
    )

    assert [key["id"] for key in both.json()["data"]] == [ada.id]
    assert code_of(wrong, 401) == "invalid_api_key"


# Paths and methods


async def test_a_wrong_method_is_answered_with_the_allowed_ones(service: Service, subtests: pytest.Subtests) -> None:
    for method, path, allow in (
        ("PUT", "/api/events", "GET, HEAD, POST"),
        ("DELETE", "/api/events", "GET, HEAD, POST"),
        ("POST", "/api/events/1", "DELETE, GET, HEAD, PATCH"),
        ("GET", "/api/organizers/register", "POST"),
        ("OPTIONS", "/api/events", "GET, HEAD, POST"),
        ("TRACE", "/api/events", "GET, HEAD, POST"),
        ("HEAD", "/api/organizers/register", "POST"),
        ("get", "/api/events", "GET, HEAD, POST"),
        ("GEHEIM", "/api/events", "GET, HEAD, POST"),
    ):
        with subtests.test(method=method, path=path):
            response = await request_directly(service, method, path)

            assert code_of(response, 405) == "method_not_allowed"
            assert response.headers["allow"] == allow


async def test_a_wrong_method_on_a_page_is_answered_with_the_allowed_ones(
    service: Service, subtests: pytest.Subtests
) -> None:
    for path in ("/api", "/openapi.json", "/docs", "/healthz"):
        with subtests.test(path=path):
            response = await service.http.post(path)

            assert code_of(response, 405) == "method_not_allowed"
            documents = {"OPTIONS"} if path != "/healthz" else set[str]()  # any page may ask for one
            assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD"} | documents


async def test_an_unknown_path_is_answered_with_404(ada: Client, subtests: pytest.Subtests) -> None:
    for path in (
        *("/nothing", "/api/nothing", "/api/events/1/nothing", "/api/events//1", "/api//events", "//api/events"),
        *("/api/registrations/1", "/api/registrations//abcdefgh", "/API/events", "/api/../api/nothing", "/<script>"),
        *(
            "/api/events%2F1%2Fnothing",
            "/healthz%2F",
            "/api/events%2F",
            "/" + "x" * 60_000,
            "/%00",
            "/%ff",
            "/%ed%a0%80",
        ),
    ):
        with subtests.test(path=path[:50]):
            assert code_of(await ada.get(path), 404) == "not_found"


async def test_a_trailing_slash_is_redirected_to_the_relative_address_without_it(
    ada: Client, subtests: pytest.Subtests
) -> None:
    """The address is relative: it does not repeat a host that the request made up."""
    for path in ("/api/events/", "/api/events/1/", "/api/keys/", "/api/", "/docs/", "/mcp/", "/healthz/"):
        for method in ("GET", "POST"):
            with subtests.test(path=path, method=method):
                response = await ada.request(method, f"{path}?limit=1", headers={"Host": "elsewhere.example"})

                assert (response.status_code, response.headers["location"]) == (308, f"{path[:-1]}?limit=1")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("query", ["evnt_id=7", "event_id=7&evnt_id=7", "%65vent_id=7", "evnt_id"])
async def test_a_misspelt_parameter_is_never_left_out_by_a_redirect(ada: Client, method: str, query: str) -> None:
    response = await ada.request(method, f"/api/registrations/?{query}", follow_redirects=True)

    assert code_of(response, 404) == "not_found"
    assert response.json()["hint"] == "Leave out the slash at the end of the path."


async def test_no_redirect_of_an_operation_drops_a_part_of_the_query(service: Service) -> None:
    for operation in ROUTED:
        path = re.sub(r"\{[^}]*\}", "4711", operation.path)
        redirected = await service.http.request(operation.method, f"{path}/?limit=1&lang=de", follow_redirects=False)
        refusal = await service.http.request(operation.method, f"{path}/?limit=1&limt=2", follow_redirects=False)

        assert (redirected.status_code, redirected.headers["location"]) == (308, f"{path}?limit=1&lang=de")
        assert code_of(refusal, 404) == "not_found"


@pytest.mark.parametrize(
    ("path", "name"),
    [("/api/queues/verify", "token"), ("/api/organizers/register", "password"), ("/api/events", "title")],
)
async def test_a_field_read_from_bodies_only_is_never_repeated_from_the_query(
    service: Service, path: str, name: str
) -> None:
    response = await service.http.post(f"{path}/?{name}=secret&limit=1", follow_redirects=False)

    assert (code_of(response, 404), response.headers.get("location")) == ("not_found", None)
    assert "secret" not in response.text


async def test_a_page_is_redirected_with_the_parameters_that_pages_read(service: Service) -> None:
    response = await service.http.get("/docs/?lang=de&utm_source=letter&signature=1", follow_redirects=False)

    assert (response.status_code, response.headers["location"]) == (308, "/docs?lang=de")


async def test_a_redirect_keeps_the_method_and_the_body(ada: Client) -> None:
    response = await ada.post("/api/keys/", {"api_key": {"name": "One more"}}, follow_redirects=True)

    assert (response.status_code, response.json()["data"]["name"]) == (201, "One more")


async def test_a_slash_at_the_end_of_what_leads_nowhere_is_not_redirected(
    service: Service, ada: Client, subtests: pytest.Subtests
) -> None:
    for path in ("/api/nothing/", "/api/events//", "/api/events/1/nothing/", "//elsewhere.example/", "//"):
        with subtests.test(path=path):
            response = await request_directly(service, "GET", path, headers=with_key(ada))

            assert code_of(response, 404) == "not_found"


async def test_an_invalid_host_header_is_ignored(service: Service, subtests: pytest.Subtests) -> None:
    for host in (b"[", b"events.test:port", b"\xff\xfe", b"", b"a b", b"evil.example/path?x=1#y"):
        for path, status in (("/api/nothing", 404), ("/api/events", 401), ("/api", 200)):
            with subtests.test(host=host, path=path):
                response = await request_directly(service, "GET", path, headers=[(b"host", host)])

                assert response.status_code == status


async def test_a_request_without_a_client_address_is_limited_and_served(service: Service) -> None:
    body = {"organizer": {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events"}}
    messages = [{"type": "http.request", "body": json.dumps(body).encode()}]

    headers = [(b"content-type", b"application/json")]
    response = await request_directly(
        service, "POST", "/api/organizers/register", headers=headers, messages=messages, client=None
    )

    assert response.status_code == 201


@pytest.mark.parametrize(
    ("client", "who"),
    [
        (("10.0.0.7", 1), "address 10.0.0.7"),
        (("::ffff:10.0.0.7", 1), "address 10.0.0.7"),
        (("2001:db8:1:2::7", 1), "network 20010db800010002"),
        (("2001:db8:1:2:ffff::8", 1), "network 20010db800010002"),
        (("testclient", 1), "address testclient"),
        (None, "a local socket"),
    ],
)
def test_a_throttle_counts_addresses_and_whole_networks_of_ipv6(client: tuple[str, int] | None, who: str) -> None:
    assert address({"type": "http", "client": client}) == who


async def test_constant_answers_refuse_wrong_methods_as_operations_do(
    service: Service, subtests: pytest.Subtests
) -> None:
    asset = SITE.asset("live.js")
    wrong = {path: await service.http.post(path) for path in ("/healthz", "/llms.txt", asset)}
    preflight = await service.http.options("/llms.txt")
    for path, refusal in wrong.items():
        with subtests.test(path):
            answer, head = await service.http.get(path), await service.http.head(path)
            assert (answer.status_code, head.status_code, refusal.status_code) == (200, 200, 405)
            assert answer.headers.items() == head.headers.items()
            assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    known = {"If-None-Match": f'"other", W/{(await service.http.get("/llms.txt")).headers["etag"]}'}
    assert (await service.http.get("/llms.txt", headers=known)).status_code == 304
    assert preflight.status_code == 204
    assert wrong["/llms.txt"].headers["allow"] == "GET, HEAD, OPTIONS"
