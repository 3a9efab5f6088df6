"""Rows become structures by the names of their columns."""

import json
from typing import Any

import pytest
from msgspec import Struct
from psycopg import ProgrammingError

from holdfast.kit.postgres.database import Reader
from tests.helpers.events_service import Service


class Box(Struct, kw_only=True):
    size: int
    label: str | None = None


async def test_columns_are_passed_by_their_names_in_any_order(boxes: Service) -> None:
    async def read(reader: Reader[Any]) -> list[Box]:
        return [
            *await reader.rows(Box, "select 'a' as label, 1 as size"),
            *await reader.rows(Box, "select 2 as size, 'b' as label"),
            *await reader.rows(Box, "select n as size from generate_series(3, 4) as n"),
        ]

    rows = await boxes.database.read(read)

    assert rows == [Box(size=1, label="a"), Box(size=2, label="b"), Box(size=3), Box(size=4)]


class Crate(Box):
    owner: str
    weight: int
    color: str = "brown"


async def test_columns_in_the_order_of_fields_or_not_make_the_same_structure(boxes: Service) -> None:
    async def read(reader: Reader[Any]) -> list[Crate]:
        return [
            *await reader.rows(Crate, "select 'Ada' as owner, 5 as weight, 'red' as color, 2 as size, 'a' as label"),
            *await reader.rows(Crate, "select 'a' as label, 'red' as color, 2 as size, 5 as weight, 'Ada' as owner"),
            *await reader.rows(Crate, "select 'Ada' as owner, 5 as weight, 2 as size"),
            *await reader.rows(Crate, "select 2 as size, 'red' as color, 5 as weight, 'Ada' as owner"),
        ]

    rows = await boxes.database.read(read)

    assert rows == [
        Crate("Ada", 5, "red", size=2, label="a"),
        Crate("Ada", 5, "red", size=2, label="a"),
        Crate("Ada", 5, size=2),
        Crate("Ada", 5, "red", size=2),
    ]


class Place(Struct):
    place: int
    total: int


async def test_a_row_can_be_two_structures(boxes: Service) -> None:
    rows = await boxes.database.read(
        lambda reader: reader.pairs(Box, Place, "select 1 as size, 'a' as label, 7 as place, 9 as total")
    )

    assert rows == [(Box(size=1, label="a"), Place(7, 9))]


async def test_two_structures_of_a_row_get_their_columns_in_order(boxes: Service) -> None:
    [(place, crate)] = await boxes.database.read(
        lambda reader: reader.pairs(
            Place,
            Crate,
            "select 7 as place, 9 as total, 'Ada' as owner, 5 as weight, 'red' as color, 2 as size, null as label",
        )
    )

    assert (place, crate) == (Place(7, 9), Crate("Ada", 5, "red", size=2))


@pytest.mark.parametrize(
    "stored", ['[{"pool_id": 5, "name": "é\\u2028"}]', "1.50", "-0", "null", f"1{'0' * 400}", f"1{'0' * 400}.5"]
)
async def test_a_column_of_json_has_the_value_that_the_standard_library_reads(boxes: Service, stored: str) -> None:
    values = await boxes.database.read(
        lambda reader: reader.tuples("select %(stored)s::json, %(stored)s::jsonb", {"stored": stored})
    )

    assert values == [(json.loads(stored), json.loads(stored))]


async def test_names_that_are_no_names_of_arguments_are_keys_of_a_dictionary(boxes: Service) -> None:
    rows = await boxes.database.read(
        lambda reader: reader.rows(dict[str, Any], """select 1 as "from", 2 as "two words", 3 as "x=1, y" """)
    )

    assert rows == [{"from": 1, "two words": 2, "x=1, y": 3}]


async def test_a_column_that_the_structure_does_not_have_is_refused(boxes: Service) -> None:
    with pytest.raises(TypeError, match="other"):
        await boxes.database.read(lambda reader: reader.rows(Box, "select 1 as size, 2 as other"))


async def test_a_statement_without_rows_has_none_to_read(boxes: Service) -> None:
    with pytest.raises(ProgrammingError):
        await boxes.database.read(lambda reader: reader.rows(Box, "set application_name = 'test'"))
