"""Rows become structures by the names of their columns."""

from typing import Any

import pytest
from msgspec import Struct
from psycopg import ProgrammingError

from holdfast.kit.postgres.database import Reader
from tests.support import Service


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


class Place(Struct):
    place: int
    total: int


async def test_a_row_can_be_two_structures(boxes: Service) -> None:
    rows = await boxes.database.read(
        lambda reader: reader.pairs(Box, Place, "select 1 as size, 'a' as label, 7 as place, 9 as total")
    )

    assert rows == [(Box(size=1, label="a"), Place(7, 9))]


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
