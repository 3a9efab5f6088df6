"""The parts of the platform's schemas that Holdfast uses, what a request costs by them, and the buckets of points."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import graphql
from graphql import (
    DocumentNode,
    ExecutionResult,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    VariableNode,
    build_ast_schema,
    parse,
)

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


MAX_QUERY_COST = 1000
"""The maximum cost of one request."""

BUCKET_SECONDS = 20
"""The capacity of a bucket, in seconds of refilling."""

MUTATION, CONNECTION = 10, 2


class Pricing:
    """The maximum cost of one operation: an object 1, a list 2 plus its nodes, a mutation 10."""

    def __init__(self, schema: GraphQLSchema, document: DocumentNode, variables: Mapping[str, Any]) -> None:
        self._schema = schema
        self._variables = variables
        self._fragments = {
            definition.name.value: definition
            for definition in document.definitions
            if isinstance(definition, FragmentDefinitionNode)
        }

    def of(self, operation: OperationDefinitionNode) -> int:
        """The maximum cost of an operation."""
        root = self._schema.get_root_type(operation.operation)
        assert root is not None
        extra_cost = MUTATION - 1 if operation.operation == OperationType.MUTATION else 0
        return self._selected(root, operation.selection_set) + extra_cost * len(operation.selection_set.selections)

    def _selected(self, type: GraphQLNamedType | None, selected: SelectionSetNode | None) -> int:
        cost, highest = 0, 0
        for selection in selected.selections if selected else ():
            match selection:
                case FieldNode():
                    cost += self._field(type, selection)
                case InlineFragmentNode():
                    narrowed = selection.type_condition
                    on = self._schema.get_type(narrowed.name.value) if narrowed else type
                    highest = max(highest, self._selected(on, selection.selection_set))
                case FragmentSpreadNode():
                    fragment = self._fragments[selection.name.value]
                    on = self._schema.get_type(fragment.type_condition.name.value)
                    highest = max(highest, self._selected(on, fragment.selection_set))
                case _:
                    pass
        return cost + highest

    def _field(self, type: GraphQLNamedType | None, field: FieldNode) -> int:
        if not isinstance(type, GraphQLObjectType | GraphQLInterfaceType) or field.name.value not in type.fields:
            return 0
        answer_type = named_type(type.fields[field.name.value].type)
        if field.selection_set is None:
            return 0
        if answer_type.name.endswith("Connection"):
            return CONNECTION + self._size(field, "first", "last") * self._node(answer_type, field.selection_set)
        if field.name.value == "nodes":
            return self._size(field, "ids") * (1 + self._selected(answer_type, field.selection_set))
        return 1 + self._selected(answer_type, field.selection_set)

    def _node(self, type: GraphQLNamedType, selected: SelectionSetNode) -> int:
        """The cost of one node of a list, selected by `nodes` or by `edges`."""
        connection = cast(GraphQLObjectType, type)
        node = named_type(connection.fields["nodes"].type)
        costs = [0]
        for field in selected.selections:
            if isinstance(field, FieldNode) and field.name.value == "nodes":
                costs.append(1 + self._selected(node, field.selection_set))
            if isinstance(field, FieldNode) and field.name.value == "edges" and field.selection_set:
                costs += [
                    1 + self._selected(node, below.selection_set)
                    for below in field.selection_set.selections
                    if isinstance(below, FieldNode) and below.name.value == "node"
                ]
        return max(costs)

    def _size(self, field: FieldNode, *names: str) -> int:
        """The maximum length of a list by the arguments of its field: a number, or the requested ids."""
        for argument in field.arguments or ():
            if argument.name.value in names:
                match argument.value:
                    case IntValueNode():
                        return int(argument.value.value)
                    case ListValueNode():
                        return len(argument.value.values)
                    case VariableNode():
                        value = self._variables.get(argument.value.name.value)
                        return value if isinstance(value, int) else len(cast(list[Any], value or ()))
                    case _:
                        return 0
        return 0


def actual_cost(data: Any) -> int:
    """The actual cost of an answer, by the objects in it."""
    match data:
        case dict():
            members = cast(dict[str, Any], data)
            return sum(actual_cost(value) for name, value in members.items() if name != "pageInfo") + (
                "edges" not in members
            )
        case list():
            return sum(actual_cost(item) for item in cast(list[Any], data))
        case _:
            return 0


class Buckets:
    """The remaining points of the app at each shop."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}

    def left(self, shop: str, points: float, now: float) -> float:
        """The remaining points, refilled until now."""
        points_left, at = self._left.get(shop, (points * BUCKET_SECONDS, now))
        return min(points * BUCKET_SECONDS, points_left + max(0.0, now - at) * points)

    def take(self, shop: str, points: float, now: float, cost: float) -> bool:
        """Take points, and return whether enough were left. A negative cost is a refund."""
        points_left = self.left(shop, points, now)
        if cost > points_left:
            return False
        self._left[shop] = (min(points * BUCKET_SECONDS, points_left - cost), now)
        return True
