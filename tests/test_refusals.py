"""The check at the end of a whole run (`refusals.py`) finds what is declared in vain and what is not declared."""

from tests.refusals import counted, differences
from tests.support import Service


def test_a_refusal_that_nobody_saw_and_one_that_nobody_declared_are_found() -> None:
    declared = {("get_event", "not_found"), ("get_event", "forbidden")}
    seen = {("get_event", "not_found"), ("get_event", "event_full"), ("get_event", "service_unavailable")}

    assert [*differences(declared, seen)] == [
        "get_event declares forbidden, which no test saw.",
        "get_event answered event_full, which it does not declare.",
    ]


def test_operations_of_others_are_left_alone() -> None:
    assert [*differences({("get_event", "not_found")}, {("get_event", "not_found"), ("fill_jar", "jar_full")})] == []


async def test_what_an_operation_refuses_is_counted(service: Service) -> None:
    ada = await service.organizer()
    assert (await ada.get("/api/events/4711")).status_code == 404

    assert ("get_event", "not_found") in counted()
