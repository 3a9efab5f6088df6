"""Structures are made of others whose fields of the same name are copied."""

import pytest
from msgspec import Struct

from holdfast.events.events.struct_copies import make_copier


class PoolRow(Struct):
    id: int
    units: int
    secret: str

    @property
    def dozens(self) -> int:
        return self.units // 12


class PoolAnswer(Struct):
    link: str
    dozens: int
    id: int
    note: str | None = "a default is not used"


pool_answer = make_copier(PoolRow, PoolAnswer)


def test_fields_and_properties_of_the_same_name_are_copied_and_others_are_named() -> None:
    assert pool_answer(PoolRow(7, 24, "hidden"), note=None, link="/7") == PoolAnswer("/7", 2, 7, None)


def test_a_field_that_the_source_does_not_have_cannot_be_forgotten() -> None:
    with pytest.raises(TypeError, match="note"):
        pool_answer(PoolRow(7, 24, "hidden"), link="/7")


def test_a_field_that_is_copied_or_unknown_cannot_be_named() -> None:
    with pytest.raises(TypeError, match="id"):
        pool_answer(PoolRow(7, 24, "hidden"), link="/7", note=None, id=8)
