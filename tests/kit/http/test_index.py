"""The index that finds the value of a path."""

from unittest.mock import ANY

import pytest

from holdfast.kit.http.index import PathIndex, field_names


@pytest.fixture
def paths() -> PathIndex[str]:
    paths: PathIndex[str] = PathIndex()
    for path in (
        "/",
        "/events",
        "/events/{id}",
        "/events/{id}/embed",
        "/events/{id}/{part}",
        "/events/{id}/cover-{version}.png",
        "/organizers/{slug}/events/{id}",
        "/media/{key:path}",
        "/media/old/{key:path}",
        "/log/{id}/tile/{tile:path}",
    ):
        paths.setdefault(path, path)
    return paths


@pytest.mark.parametrize(
    ("path", "value", "fields"),
    [
        ("/", "/", {}),
        ("/events", "/events", {}),
        ("/events/7", "/events/{id}", {"id": "7"}),
        ("/events/embed", "/events/{id}", {"id": "embed"}),
        ("/events/7/embed", "/events/{id}/embed", {"id": "7"}),
        ("/events/7/other", "/events/{id}/{part}", {"id": "7", "part": "other"}),
        ("/events/7/cover-a.b.png", "/events/{id}/cover-{version}.png", {"id": "7", "version": "a.b"}),
        ("/events/7/cover-.png", "/events/{id}/{part}", {"id": "7", "part": "cover-.png"}),
        ("/organizers/ada/events/7", "/organizers/{slug}/events/{id}", {"slug": "ada", "id": "7"}),
        ("/media/a/b", "/media/{key:path}", {"key": "a/b"}),
        ("/media/", "/media/{key:path}", {"key": ""}),
        ("/media/a//b/", "/media/{key:path}", {"key": "a//b/"}),
        ("/media/old/a/b", "/media/old/{key:path}", {"key": "a/b"}),
        ("/log/7/tile/0/000", "/log/{id}/tile/{tile:path}", {"id": "7", "tile": "0/000"}),
    ],
)
def test_a_path_leads_to_its_value_and_its_fields(
    paths: PathIndex[str], path: str, value: str, fields: dict[str, str]
) -> None:
    assert paths.find(path, path.split("/")) == (value, fields)


@pytest.mark.parametrize(
    "path",
    ["", "/event", "/events/", "/events//embed", "/events/7/", "/organizers//events/7", "/media", "/log//tile/0"],
)
def test_an_unknown_path_and_an_empty_field_lead_nowhere(paths: PathIndex[str], path: str) -> None:
    assert paths.find(path, path.split("/")) is None


def test_a_path_keeps_its_first_value(paths: PathIndex[str]) -> None:
    assert paths.setdefault("/events/{id}", "another") == "/events/{id}"
    assert paths.setdefault("/events/{other}", "another") == "/events/{id}"
    assert paths.setdefault("/events/{id}/cover-{other}.png", "another") == "/events/{id}/cover-{version}.png"


@pytest.mark.parametrize("order", [1, -1])
def test_the_path_with_fewer_fields_is_found_in_any_order_of_adding(order: int) -> None:
    paths: PathIndex[str] = PathIndex()
    for path in ["/x/{id}/{part}", "/{noun}/{id}/add", "/x/{id}/add", "/{noun}/{id}/{part}"][::order]:
        paths.setdefault(path, path)

    for path, value in {
        "/x/7/add": "/x/{id}/add",
        "/x/7/y": "/x/{id}/{part}",
        "/z/7/add": "/{noun}/{id}/add",
        "/z/7/y": "/{noun}/{id}/{part}",
    }.items():
        assert paths.find(path, path.split("/")) == (value, ANY)


def test_the_fields_of_a_path_have_names() -> None:
    assert field_names("/organizers/{slug}/events/{id}/cover-{version}.png") == ["slug", "id", "version"]
