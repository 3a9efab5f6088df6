"""A line of the table says everything its doors and documents need to know."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from holdfast.kit.command import Command, Id, check
from holdfast.kit.database import Database, Tx
from holdfast.kit.operation import NOBODY, READS, Call, Caller, Operation, Page, Paged, page
from holdfast.kit.problems import Problem


class Lamp(Struct):
    id: int


class FindLamp(Command):
    room: Id
    lamp: Id


async def find(tx: Tx[None], caller: Caller, command: FindLamp) -> Lamp:
    """Find a lamp.

    Only in rooms of one's own.
    """
    return Lamp(command.lamp)


async def switch(tx: Tx[None], calls: Sequence[Call[FindLamp]]) -> Sequence[Lamp | Problem]:
    """Switch lamps."""
    return [Lamp(call.command.lamp) for call in calls]


async def remove(tx: Tx[None], caller: Caller, command: FindLamp) -> None:
    """Remove a lamp."""


async def count(tx: Tx[None], caller: Caller, command: Paged) -> Page[Lamp]:
    """List lamps."""
    return page([], command)


async def order(database: Database[None], caller: Caller, command: FindLamp) -> Lamp:
    """Order a lamp from elsewhere."""
    return Lamp(command.lamp)


ONE = Operation("find_lamp", "GET    /rooms/{room}/lamps/{lamp}", find)
MANY = Operation("switch_lamp", "POST /lamps", switch, body="lamp", status=202, bare=True)


def test_the_route_is_a_method_and_a_path_whose_names_are_fields() -> None:
    assert (ONE.method, ONE.path, ONE.path_fields) == ("GET", "/rooms/{room}/lamps/{lamp}", ("room", "lamp"))
    assert (MANY.method, MANY.path, MANY.path_fields) == ("POST", "/lamps", ())


def test_the_function_says_whether_many_callers_share_it() -> None:
    assert (ONE.many, MANY.many) == (False, True)


def test_the_function_says_whether_it_makes_its_transactions_itself() -> None:
    ordered = Operation("order_lamp", "POST /lamps/{lamp}", order)

    assert [each.transacts_itself for each in (ONE, MANY, ordered)] == [False, False, True]
    assert (ordered.many, ordered.command, ordered.answer) == (False, FindLamp, Lamp)


def test_the_annotations_say_what_is_asked_and_answered() -> None:
    assert (ONE.command, ONE.answer) == (FindLamp, Lamp)
    assert (MANY.command, MANY.answer) == (FindLamp, Lamp)


def test_an_operation_that_answers_nothing_has_no_answer() -> None:
    assert Operation("remove_lamp", "DELETE /lamps/{lamp}", remove, status=204).answer is None


def test_an_operation_that_answers_a_page_is_paged() -> None:
    lists = Operation("list_lamps", "GET /lamps", count)

    assert (lists.paged, lists.answer) == (True, Page[Lamp])
    assert (ONE.paged, MANY.paged) == (False, False)


def test_the_docstring_is_the_description_and_its_first_line_the_summary() -> None:
    assert ONE.summary == "Find a lamp."
    assert ONE.description == "Find a lamp.\n\nOnly in rooms of one's own."


@pytest.mark.parametrize(
    ("caller", "own", "others", "admin"),
    [
        (Caller(key_id=1, tenant_id=7), True, False, False),
        (Caller(key_id=2, tenant_id=None), True, True, True),
        (NOBODY, False, False, False),
    ],
)
def test_a_caller_may_access_its_own_and_an_admin_everything(
    caller: Caller, own: bool, others: bool, admin: bool
) -> None:
    assert (caller.may_access(7), caller.may_access(8), caller.is_admin) == (own, others, admin)


@given(total=st.integers(0, 30), offset=st.integers(0, 40), limit=st.integers(1, 12))
def test_a_page_tells_what_it_holds_and_whether_the_list_goes_on(total: int, offset: int, limit: int) -> None:
    everything = list(range(total))
    command = check(Paged, {"offset": offset, "limit": limit})

    shown = page(everything[offset : offset + limit + 1], command)

    assert shown.data == everything[offset : offset + limit]
    assert (shown.pagination.offset, shown.pagination.limit) == (offset, limit)
    assert shown.pagination.count == len(shown.data)
    assert shown.pagination.has_more == (offset + limit < total)


def test_a_page_starts_at_0_and_holds_100_unless_told_otherwise() -> None:
    command = check(Paged, {})

    assert (command.offset, command.limit) == (0, 100)


@pytest.mark.parametrize(
    "raw", [{"limit": 0}, {"limit": 501}, {"limit": -1}, {"offset": -1}, {"offset": 100_001}, {"page": 2}]
)
def test_a_page_out_of_bounds_is_refused(raw: dict[str, int]) -> None:
    with pytest.raises(Problem) as refusal:
        check(Paged, raw)

    assert refusal.value.extra["errors"].keys() == raw.keys()


async def look_up(tx: Tx[None], caller: Caller, command: Paged) -> None:
    """Look something up."""


@pytest.mark.parametrize(
    ("operation", "reads"),
    [
        (Operation("look_up", "GET /things", look_up), True),
        (Operation("look_up", "GET /things", look_up, records=True), False),
        (Operation("look_up", None, look_up, READS), True),
        (Operation("look_up", "POST /things", look_up), False),
    ],
)
def test_what_may_store_something_does_not_run_as_a_read(operation: Operation, reads: bool) -> None:
    assert operation.reads == reads
