"""The check at the end of a whole run (`refusals.py`) finds refusals that are unused or undeclared."""

from holdfast.events import service as events
from holdfast.inventory import service as inventory
from holdfast.inventory.webhooks.operations import CONSOLE_OPERATIONS
from tests.helpers.events_service import Service
from tests.refusals import counted_refusals, differences, operations


def test_a_refusal_that_is_unused_and_one_that_is_undeclared_are_found() -> None:
    declared = {("get_event", "not_found"), ("get_event", "forbidden")}
    seen = {("get_event", "not_found"), ("get_event", "event_full"), ("get_event", "service_unavailable")}
    seen.add(("list_mails", "forbidden"))

    assert [*differences({"get_event", "list_mails"}, declared, seen)] == [
        "get_event declares forbidden, which no test saw.",
        "get_event answered event_full, which it does not declare.",
        "list_mails answered forbidden, which it does not declare.",
    ]


def test_refusals_of_unknown_operations_are_ignored() -> None:
    seen = {("get_event", "not_found"), ("fill_jar", "jar_full")}

    assert [*differences({"get_event"}, {("get_event", "not_found")}, seen)] == []


def test_every_operation_is_looked_at_and_has_a_name_of_its_own() -> None:
    names = [
        operation.name
        for operation in (*events.ALL_OPERATIONS, *inventory.ALL_OPERATIONS, *inventory.TENANTLESS_OPERATIONS)
    ]

    twice = {name for name in names if names.count(name) > 1}
    shared = (*inventory.ACCOUNTS.operations, *CONSOLE_OPERATIONS)
    tools_of_both = {"list_webhooks", "set_webhook"}
    assert twice == {operation.name for operation in shared} | tools_of_both
    assert {*names} == {operation.name for operation in operations()}
    assert {"get_event", "adjust_pool_quantity", "edit_event", "sign_in_by_link", "erase_own_data"} <= {*names}


async def test_a_refusal_of_an_operation_is_counted(service: Service) -> None:
    ada = await service.organizer()
    assert (await ada.get("/api/events/4711")).status_code == 404

    assert ("get_event", "not_found") in counted_refusals()
