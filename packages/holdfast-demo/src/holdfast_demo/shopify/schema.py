"""The parts of the platform's schemas, version 2026-10, that Holdfast uses. Requests are validated against them."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import graphql
from graphql import DocumentNode, ExecutionResult, GraphQLNamedType, GraphQLSchema, build_ast_schema, parse

VERSION = "2026-10"

FILE = Path(__file__).parent / "schema.graphql"
"""Made by `tests/demo/shopify/reduction.py` from the platform's schema, which is two hundred times as large."""

FUNCTIONS = FILE.with_name("functions.graphql")
"""The schema of functions that check carts, made in the same way."""

_library: Any = graphql
"""The library as `Any`, for its functions with incomplete types."""


@cache
def schema() -> GraphQLSchema:
    """The schema of the Admin API, read at the first call."""
    return _build(FILE)


@cache
def functions() -> GraphQLSchema:
    """The schema of the input and output of functions that check carts."""
    return _build(FUNCTIONS)


def _build(file: Path) -> GraphQLSchema:
    return build_ast_schema(parse(file.read_text(), no_location=True), assume_valid=True)


def execute(
    document: DocumentNode,
    root: Mapping[str, Any],
    variables: dict[str, Any] | None = None,
    operation: str | None = None,
    *,
    resolver: Callable[..., Any] | None = None,
    within: GraphQLSchema | None = None,
) -> ExecutionResult:
    """Execute a valid document.

    root        the fields at the top
    resolver    how fields are found; None: by their names
    within      the schema; None: that of the Admin API
    """
    return _library.execute_sync(
        within or schema(), document, root, variable_values=variables, operation_name=operation, field_resolver=resolver
    )


def resolve_field(source: Any, info: Any, **arguments: Any) -> Any:
    """A field, found by its name."""
    return _library.default_field_resolver(source, info, **arguments)


def may_be_missing(type: Any) -> bool:
    """Whether a field of this type is an object that may be null."""
    return _library.is_nullable_type(type) and _library.is_composite_type(type)


def coerce(value: Any, type: Any) -> Any:
    """A value as its input type. Raises `GraphQLError` if it does not fit."""
    return _library.utilities.coerce_input_value(value, type)


def named_type(type: Any) -> GraphQLNamedType:
    """A type without its list and non-null wrappers."""
    return _library.get_named_type(type)
