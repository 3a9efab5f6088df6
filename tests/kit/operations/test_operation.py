"""A line of the table says everything that HTTP, tools and documents need to know."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from holdfast.kit.contract.caller import Caller, api_key, stranger
from holdfast.kit.contract.command import Command, Id, check
from holdfast.kit.contract.problems import Problem, ProblemType, refuses
from holdfast.kit.operations.operation import Batch, Batched, Operation, Single, Stepwise, batched, read, single, steps
from holdfast.kit.operations.steps import Conclusion, Steps
from holdfast.kit.postgres.database import Reader, Tx
from holdfast.kit.postgres.pagination import OffsetPage, Page, offset_page

STRANGER = stranger("address 192.0.2.1")

BROKEN = ProblemType("lamp_broken", 409, "The lamp is broken.", "Repair it first.")


class Lamp(Struct):
    id: int


class FindLamp(Command):
    room: Id
    lamp: Id


async def find(reader: Reader[None], caller: Caller, command: FindLamp) -> Lamp:
    """Find a lamp.

    Only in rooms of one's own.
    """
    return Lamp(command.lamp)


async def switch(tx: Tx[None], batch: Batch[FindLamp]) -> Sequence[Lamp | Problem]:
    """Switch lamps."""
    return [Lamp(call.command.lamp) for call in batch.calls]


async def remove(tx: Tx[None], caller: Caller, command: FindLamp) -> None:
    """Remove a lamp."""


async def count(reader: Reader[None], caller: Caller, command: OffsetPage) -> Page[Lamp]:
    """List lamps."""
    return offset_page([], command)


async def order(opened: Steps[None], caller: Caller, command: FindLamp) -> Conclusion[Lamp]:
    """Order a lamp from elsewhere."""

    async def work(tx: Tx[None]) -> Lamp:
        return Lamp(command.lamp)

    return await opened.conclude(work)


ONE = Operation("find_lamp", "GET    /rooms/{room}/lamps/{lamp}", read(find))
MANY = Operation("switch_lamp", "POST /lamps", batched(switch), body_member="lamp", status=202, bare=True)


def test_a_route_is_a_method_and_a_path_whose_names_are_fields() -> None:
    assert (ONE.method, ONE.path, ONE.path_fields) == ("GET", "/rooms/{room}/lamps/{lamp}", ("room", "lamp"))
    assert (MANY.method, MANY.path, MANY.path_fields) == ("POST", "/lamps", ())


def test_the_mode_of_an_operation_follows_from_its_function() -> None:
    ordered = Operation("order_lamp", "POST /lamps/{lamp}", steps(order))

    assert [type(operation.mode) for operation in (ONE, MANY, ordered)] == [Single, Batched, Stepwise]
    assert (ordered.command, ordered.answer) == (FindLamp, Lamp)


def test_the_annotations_of_an_operation_are_its_command_and_answer() -> None:
    assert (ONE.command, ONE.answer) == (FindLamp, Lamp)
    assert (MANY.command, MANY.answer) == (FindLamp, Lamp)


def test_an_operation_that_answers_nothing_has_no_answer() -> None:
    assert Operation("remove_lamp", "DELETE /lamps/{lamp}", single(remove), status=204).answer is None


def test_an_operation_that_answers_a_page_is_paged() -> None:
    lists = Operation("list_lamps", "GET /lamps", read(count))

    assert (lists.is_paginated, lists.answer) == (True, Page[Lamp])
    assert (ONE.is_paginated, MANY.is_paginated) == (False, False)


def test_the_docstring_of_an_operation_is_its_description_and_the_first_line_its_summary() -> None:
    assert ONE.summary == "Find a lamp."
    assert ONE.description == "Find a lamp.\n\nOnly in rooms of one's own."


@pytest.mark.parametrize(
    ("caller", "own_tenant", "others", "admin"),
    [
        (api_key(1, 7), True, False, False),
        (api_key(2, None), True, True, True),
        (STRANGER, False, False, False),
    ],
)
def test_a_caller_may_access_its_own_tenant_and_an_admin_every_tenant(
    caller: Caller, own_tenant: bool, others: bool, admin: bool
) -> None:
    assert (caller.may_access(7), caller.may_access(8), caller.is_admin) == (own_tenant, others, admin)


@given(total=st.integers(0, 30), offset=st.integers(0, 40), limit=st.integers(1, 12))
def test_a_page_tells_what_it_holds_and_whether_the_list_goes_on(total: int, offset: int, limit: int) -> None:
    everything = list(range(total))
    command = check(OffsetPage, {"offset": offset, "limit": limit})

    page = offset_page(everything[offset : offset + limit + 1], command)

    assert page.data == everything[offset : offset + limit]
    assert (page.pagination.offset, page.pagination.limit) == (offset, limit)
    assert page.pagination.count == len(page.data)
    assert page.pagination.has_more == (offset + limit < total)


def test_a_page_starts_at_0_and_holds_100_items_by_default() -> None:
    command = check(OffsetPage, {})

    assert (command.offset, command.limit) == (0, 100)


@pytest.mark.parametrize(
    "raw", [{"limit": 0}, {"limit": 501}, {"limit": -1}, {"offset": -1}, {"offset": 100_001}, {"page": 2}]
)
def test_a_page_out_of_bounds_is_refused(raw: dict[str, int]) -> None:
    with pytest.raises(Problem) as refusal:
        check(OffsetPage, raw)

    assert refusal.value.extra["errors"].keys() == raw.keys()


def test_an_operation_that_may_write_is_no_read() -> None:
    assert [mode.reads for mode in (read(find), single(find), batched(switch))] == [True, False, False]


def test_an_operation_refuses_what_it_declares_and_what_its_line_implies() -> None:
    @refuses(BROKEN)
    async def repair(tx: Tx[None], caller: Caller, command: FindLamp) -> Lamp:
        return Lamp(command.lamp)

    repaired = Operation("repair_lamp", "POST /lamps/{lamp}", single(repair), scope="repair", limit="repairs")
    public = Operation("find_lamp", "GET /lamp", read(find), public=True)

    assert [problem.code for problem in repaired.refuses] == [
        "bad_request",
        "invalid_json",
        "invalid_api_key",
        "missing_api_key",
        "insufficient_scope",
        "not_found",
        "lamp_broken",
        "payload_too_large",
        "unsupported_media_type",
        "validation_failed",
        "rate_limited",
        "internal_error",
        "service_unavailable",
    ]
    assert [problem.code for problem in public.refuses] == [
        "bad_request",
        "validation_failed",
        "internal_error",
        "service_unavailable",
    ]
