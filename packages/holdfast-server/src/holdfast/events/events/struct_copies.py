"""Structures that are made of others whose fields of the same name are copied."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

S = TypeVar("S", bound=Struct)


def make_copier(source: type[Struct], target: type[S]) -> Callable[..., S]:
    """A function `(source, **others) -> target`: a target with the fields and properties of a source.

    The others are all fields of the target that the source does not have. A call without one raises `TypeError`.

    msgspec takes 2.5 us to make a structure of 46 fields by name, and 0.2 us by place. A copier gives every field by
    its place, and the code that calls it names only what is not copied.
    """
    fields = target.__struct_fields__
    others = [name for name in fields if not hasattr(source, name)]
    values = [name if name in others else f"source.{name}" for name in fields]
    parameters = ", ".join(["source", *(["*", *others] if others else [])])
    return eval(f"lambda {parameters}: target({', '.join(values)})", {"target": target})  # noqa: S307 - of names of fields
