"""What a path leads to is found by a look-up."""

import pytest

from holdfast.kit.http.paths import Paths, fields_of


@pytest.fixture
def paths() -> Paths[str]:
    paths: Paths[str] = Paths()
    for path in ("/", "/events", "/events/{id}", "/events/{id}/embed", "/organizers/{slug}/events/{id}"):
        paths.setdefault(path, path)
    return paths


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/", "/"),
        ("/events", "/events"),
        ("/events/7", "/events/{id}"),
        ("/events/embed", "/events/{id}"),
        ("/events/7/embed", "/events/{id}/embed"),
        ("/organizers/ada/events/7", "/organizers/{slug}/events/{id}"),
    ],
)
def test_a_path_leads_to_its_value(paths: Paths[str], path: str, value: str) -> None:
    assert paths.find(path, path.split("/")) == value


@pytest.mark.parametrize("path", ["", "/event", "/events/", "/events//embed", "/events/7/", "/organizers//events/7"])
def test_an_unknown_path_and_an_empty_field_lead_nowhere(paths: Paths[str], path: str) -> None:
    assert paths.find(path, path.split("/")) is None


def test_a_path_keeps_the_value_it_got_first(paths: Paths[str]) -> None:
    assert paths.setdefault("/events/{id}", "another") == "/events/{id}"


@pytest.mark.parametrize("order", [1, -1])
def test_the_path_with_fewer_fields_is_found_whatever_came_first(order: int) -> None:
    paths: Paths[str] = Paths()
    for path in ["/x/{id}/{part}", "/{noun}/{id}/add", "/x/{id}/add", "/{noun}/{id}/{part}"][::order]:
        paths.setdefault(path, path)

    for path, value in {
        "/x/7/add": "/x/{id}/add",
        "/x/7/y": "/x/{id}/{part}",
        "/z/7/add": "/{noun}/{id}/add",
        "/z/7/y": "/{noun}/{id}/{part}",
    }.items():
        assert paths.find(path, path.split("/")) == value


def test_fields_are_named_with_the_places_of_their_parts() -> None:
    assert fields_of("/organizers/{slug}/events/{id}") == {"slug": 2, "id": 4}
