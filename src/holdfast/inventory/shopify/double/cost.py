"""What requests cost, and the buckets from which they are paid."""

from collections.abc import Mapping
from typing import Any, cast

from graphql import (
    DocumentNode,
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
)

from holdfast.inventory.shopify.double.schema import named

HIGHEST = 1000
"""What one request may cost at most."""

SECONDS = 20
"""How many seconds' points can be saved."""

MUTATION, CONNECTION = 10, 2


class Pricing:
    """What one operation costs at most: an object 1, a list 2 and its nodes, a mutation 10."""

    def __init__(self, schema: GraphQLSchema, document: DocumentNode, variables: Mapping[str, Any]) -> None:
        self._schema = schema
        self._variables = variables
        self._fragments = {
            each.name.value: each for each in document.definitions if isinstance(each, FragmentDefinitionNode)
        }

    def of(self, operation: OperationDefinitionNode) -> int:
        """The cost of an operation."""
        root = self._schema.get_root_type(operation.operation)
        assert root is not None
        each = MUTATION - 1 if operation.operation == OperationType.MUTATION else 0
        return self._selected(root, operation.selection_set) + each * len(operation.selection_set.selections)

    def _selected(self, type: GraphQLNamedType | None, selected: SelectionSetNode | None) -> int:
        cost, highest = 0, 0
        for each in selected.selections if selected else ():
            match each:
                case FieldNode():
                    cost += self._field(type, each)
                case InlineFragmentNode():
                    narrowed = each.type_condition
                    on = self._schema.get_type(narrowed.name.value) if narrowed else type
                    highest = max(highest, self._selected(on, each.selection_set))
                case FragmentSpreadNode():
                    fragment = self._fragments[each.name.value]
                    on = self._schema.get_type(fragment.type_condition.name.value)
                    highest = max(highest, self._selected(on, fragment.selection_set))
                case _:
                    pass
        return cost + highest

    def _field(self, type: GraphQLNamedType | None, field: FieldNode) -> int:
        if not isinstance(type, GraphQLObjectType | GraphQLInterfaceType) or field.name.value not in type.fields:
            return 0
        answered = named(type.fields[field.name.value].type)
        if field.selection_set is None:
            return 0
        if answered.name.endswith("Connection"):
            return CONNECTION + self._size(field, "first", "last") * self._node(answered, field.selection_set)
        if field.name.value == "nodes":
            return self._size(field, "ids") * (1 + self._selected(answered, field.selection_set))
        return 1 + self._selected(answered, field.selection_set)

    def _node(self, type: GraphQLNamedType, selected: SelectionSetNode) -> int:
        """What one node of a list costs, whichever way it is asked for."""
        connection = cast(GraphQLObjectType, type)
        node = named(connection.fields["nodes"].type)
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
        """How long a list can be, by the arguments of its field: a number, or the things that are asked for."""
        for argument in field.arguments or ():
            if argument.name.value in names:
                match argument.value:
                    case IntValueNode():
                        return int(argument.value.value)
                    case ListValueNode():
                        return len(argument.value.values)
                    case VariableNode():
                        given = self._variables.get(argument.value.name.value)
                        return given if isinstance(given, int) else len(cast(list[Any], given or ()))
                    case _:
                        return 0
        return 0


def spent(data: Any) -> int:
    """What an answer has really cost, by the objects in it."""
    match data:
        case dict():
            members = cast(dict[str, Any], data)
            return sum(spent(value) for name, value in members.items() if name != "pageInfo") + ("edges" not in members)
        case list():
            return sum(spent(each) for each in cast(list[Any], data))
        case _:
            return 0


class Buckets:
    """The points that the app has left at each shop."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}

    def left(self, shop: str, points: float, now: float) -> float:
        """What is left, refilled until now."""
        left, at = self._left.get(shop, (points * SECONDS, now))
        return min(points * SECONDS, left + max(0.0, now - at) * points)

    def take(self, shop: str, points: float, now: float, cost: float) -> bool:
        """Whether a cost could be paid; a negative one is given back."""
        left = self.left(shop, points, now)
        if cost > left:
            return False
        self._left[shop] = (min(points * SECONDS, left - cost), now)
        return True
