"""The parts of the platform's schemas, version 2026-10, that Holdfast uses: what requests have to be valid against."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import graphql
from graphql import DocumentNode, ExecutionResult, GraphQLNamedType, GraphQLSchema, build_ast_schema, parse

VERSION = "2026-10"

FILE = Path(__file__).parent / "schema.graphql"
"""Made by `tests/inventory/platform_double/reduction.py` from the platform's own, which is two hundred times as big."""

FUNCTIONS = FILE.with_name("functions.graphql")
"""The schema of functions that look at carts, made in the same way."""

_library: Any = graphql
"""The library, for those of its functions whose types are only known in part."""


@cache
def schema() -> GraphQLSchema:
    """The schema of the Admin API, read when it is needed first."""
    return _built(FILE)


@cache
def functions() -> GraphQLSchema:
    """The schema of what functions that look at carts are given, and answer."""
    return _built(FUNCTIONS)


def _built(file: Path) -> GraphQLSchema:
    return build_ast_schema(parse(file.read_text(), no_location=True), assume_valid=True)


def executed(
    document: DocumentNode,
    root: Mapping[str, Any],
    variables: dict[str, Any] | None = None,
    operation: str | None = None,
    *,
    resolver: Callable[..., Any] | None = None,
    within: GraphQLSchema | None = None,
) -> ExecutionResult:
    """What a valid document is answered.

    root        the fields at the top
    resolver    how fields are found; None: by their names
    within      the schema; None: that of the Admin API
    """
    return _library.execute_sync(
        within or schema(), document, root, variable_values=variables, operation_name=operation, field_resolver=resolver
    )


def resolved(source: Any, info: Any, **given: Any) -> Any:
    """A field, found by its name."""
    return _library.default_field_resolver(source, info, **given)


def may_be_missing(type: Any) -> bool:
    """Whether a field of this type is an object that may be null."""
    return _library.is_nullable_type(type) and _library.is_composite_type(type)


def coerced(value: Any, type: Any) -> Any:
    """A value of an input type. Raises `GraphQLError` for one that is not."""
    return _library.utilities.coerce_input_value(value, type)


def named(type: Any) -> GraphQLNamedType:
    """A type without what says whether it is a list, or may be null."""
    return _library.get_named_type(type)
