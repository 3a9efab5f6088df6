"""The comparison of the wire between two runs: equal runs have no differences, and changes are named."""

from tests.programs import wire


def test_two_runs_of_the_comparison_have_no_differences() -> None:
    first = wire.write_all()

    assert [*wire.differences(first, wire.write_all())] == []
    assert {"events/schema.sql", "inventory/paths.txt", "events/get/openapi.json.json.txt", "help/up.txt"} <= {*first}
    assert "POST" in first["events/paths.txt"]


def test_a_changed_method_is_named_with_its_path() -> None:
    before = {"events/paths.txt": "/api/events  GET, HEAD, POST\n", "help/up.txt": "Usage\n"}
    after = {"events/paths.txt": "/api/events  GET, HEAD\n", "help/up.txt": "Usage\n"}

    changed = [*wire.differences(before, after)]

    assert "-/api/events  GET, HEAD, POST\n" in changed
    assert "+/api/events  GET, HEAD\n" in changed
    assert not any("help" in line for line in changed)
