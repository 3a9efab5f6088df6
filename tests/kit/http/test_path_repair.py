"""Links as people pass them on: what is glued to them is left out, and nothing but pages is found so."""

import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kit.http.path_repair import PathRepair
from tests.kit.http.link_ends import END_MARKS, ENDS

PATHS = (
    "/",
    "/console",
    "/console/events/new",
    "/console/events/{event_id}",
    "/events/{event_id}",
    "/events/{event_id}/calendar.ics",
    "/organizers/{slug}",
    "/organizers/{slug}/events/{event_id}",
    "/registrations/{link}",
    "/registrations/{link}/unsubscribe",
    "/api/pages/{id}",
)
REPAIR = PathRepair(PATHS, {"lang"}, ("/api/", "/mcp/"))
SECRET = "7-abcdefgh-9-0123456789abcdef0123456789abcdef"


def repaired_path(path: str, *, query: str = "", method: str = "GET", is_encoded: bool = True) -> str | None:
    raw = quote(path, safe="/~._-") if is_encoded else path
    scope = {"method": method, "path": path, "raw_path": raw.encode(), "query_string": query.encode()}
    location = REPAIR.location(scope)
    return location.decode() if location else None


EVENT = "/organizers/ada/events/1"


@pytest.mark.parametrize(
    ("path", "page"),
    [
        *((f"{EVENT}{glue}", EVENT) for glue in ENDS),
        (f"{EVENT}.Next", EVENT),
        ("/organizers/\u200bada/\u200bevents/1", EVENT),
        ("/organizers/a\u00adda/events/1", EVENT),
        ("/Organizers/ADA/Events/1", EVENT),
        ("/ORGANIZERS/Ada", "/organizers/ada"),
        ("//organizers//ada/events/1", EVENT),
        ("/organizer/ada/event/1", EVENT),
        ("/event/1", "/events/1"),
        ("/event/1).", "/events/1"),
        ("//console", "/console"),
        ("/Console", "/console"),
        ("/console)", "/console"),
        ("/consoles", "/console"),
        ("/)", "/"),
        ("/.", "/"),
        ("//", "/"),
        ("/events/1/Calendar.ics.", "/events/1/calendar.ics"),
        (f"/registrations/{SECRET})", f"/registrations/{SECRET}"),
        (f"/registrations/{SECRET}/unsubscribe>.", f"/registrations/{SECRET}/unsubscribe"),
        (f"/Registration/{SECRET}", f"/registrations/{SECRET}"),
        ("/registrations/AbC-", "/registrations/AbC"),
    ],
)  # fmt: skip
def test_a_link_as_it_is_passed_on_leads_to_its_page(path: str, page: str) -> None:
    assert repaired_path(path) == page


@pytest.mark.parametrize(
    "raw", ["/console%", "/console%2", "/console%E2%80", "/console%C2%BB", "/console%2529", "/console%EF%BB%BF"]
)
def test_a_badly_or_twice_encoded_end_of_a_link_is_removed(raw: str) -> None:
    assert repaired_path("/console?", is_encoded=False) == "/console"
    assert repaired_path(raw, is_encoded=False) == "/console"


@pytest.mark.parametrize(
    "path",
    [
        EVENT,
        "/",
        "/nothing",
        "/参加",
        "/\x00",
        "/<script>",
        "/api/pages/1)",
        "//api/pages/1)",
        "/API/pages/1)",
        "/mcp)",
        "//example.com",
        "/\\example.com",
        "/example.com/console",
        "/organizers",
        "/organizers/)",
        "/x" * 2_000 + ")",
    ],
)
def test_a_path_that_is_no_link_to_a_page_is_not_repaired(path: str) -> None:
    assert repaired_path(path) is None


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_only_reads_are_redirected_to_a_repaired_path(method: str) -> None:
    assert repaired_path("/console)", method=method) is None


def test_a_repaired_path_keeps_only_parameters_that_pages_read() -> None:
    assert repaired_path("/console)", query="lang=de&token=secret&utm_source=x") == "/console?lang=de"


@given(st.text(min_size=1, max_size=60), st.booleans())
def test_a_repaired_path_never_leads_to_another_site_or_in_a_circle(path: str, is_encoded: bool) -> None:
    location: str | None = "/" + path
    seen: list[str] = []
    for _ in range(20):
        location = repaired_path(location, is_encoded=is_encoded and not seen)
        if location is None:
            return
        assert re.fullmatch(r"/|(/[A-Za-z0-9._~-]+)+", location)
        assert location not in seen
        seen.append(location)
    raise AssertionError(seen)


@given(
    st.sampled_from([path for path in PATHS if not path.startswith("/api") and path != "/"]),
    st.from_regex(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", fullmatch=True),
    st.lists(st.sampled_from(END_MARKS), min_size=1, max_size=5).map("".join),
)
def test_a_link_with_any_characters_appended_is_repaired(pattern: str, value: str, glue: str) -> None:
    page = pattern.format(event_id="1", slug=value, link=value)

    assert repaired_path(page + glue) == page
