"""`python -m tests.demo.shopify.reduction INTROSPECTION SCHEMA`: renews a schema of the double.

INTROSPECTION is the platform's answer to an introspection query, as JSON, and may be gzipped. SCHEMA is the double's:
`schema.graphql` for the Admin API, `functions.graphql` for the function that looks at carts. It keeps the types and the
fields that it has; arguments, inputs and enumerations of these become whole. To keep a further field,
write its name into the schema with any type, and run this again. What is valid against the reduced schema is then
valid against the platform's.
"""

import gzip
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import graphql

WITH_FIELDS = (graphql.ObjectTypeDefinitionNode, graphql.InterfaceTypeDefinitionNode)
BUILT_IN = {"ID", "Int", "Float", "String", "Boolean"}
LEFT_OUT = {"description", "isDeprecated", "deprecationReason", "specifiedByURL"}


def reduced_schema(introspection: Any, schema: str) -> str:
    """The platform's schema with only the types and fields that another schema names. Raises `KeyError` for others."""
    platform = graphql.print_schema(graphql.build_client_schema({"__schema": introspection}))
    known: dict[str, Any] = {_name(definition): definition for definition in graphql.parse(platform).definitions}
    fields = {
        _name(definition): [field.name.value for field in definition.fields or ()]
        for definition in graphql.parse(schema).definitions
        if isinstance(definition, WITH_FIELDS)
    }
    definitions = [known[name] for name in ("", "@idempotent") if name in known]
    definitions += [_reduced_type(known[name], fields) for name in sorted(fields)]
    done = {*fields, *BUILT_IN}
    while left := {*chain.from_iterable(map(_used_names, definitions))} - done:
        done |= left
        definitions += [_reduced_type(known[name], fields) for name in sorted(left)]
    return f"{graphql.print_ast(graphql.DocumentNode(definitions=tuple(definitions)))}\n"


def _name(definition: Any) -> str:
    """The name of a type, or that of a directive with its sign; the schema itself has none."""
    is_directive = isinstance(definition, graphql.DirectiveDefinitionNode)
    return f"{'@' if is_directive else ''}{definition.name.value}" if hasattr(definition, "name") else ""


def _reduced_type(definition: Any, fields: Mapping[str, list[str]]) -> Any:
    """What is kept of the definition of a type."""
    name = _name(definition)
    if isinstance(definition, graphql.UnionTypeDefinitionNode):
        return replace(definition, types=tuple(member for member in definition.types or () if _name(member) in fields))
    if not isinstance(definition, WITH_FIELDS):
        return definition
    if name not in fields:
        raise KeyError(f"{name} is the type of a field; the schema has to say which of its fields it keeps.")
    known = {_name(field): field for field in definition.fields or ()}
    interfaces = [
        interface
        for interface in definition.interfaces or ()
        if {*fields.get(_name(interface), "-")} <= {*fields[name]}
    ]
    return replace(
        definition,
        fields=tuple(known[field] for field in fields[name]),
        interfaces=tuple(sorted(interfaces, key=_name)),
    )


def _used_names(definition: graphql.Node) -> set[str]:
    """The names of the types in a definition."""
    used = set[str]()

    class Names(graphql.Visitor):
        def enter_named_type(self, node: graphql.NamedTypeNode, *_: Any) -> None:
            used.add(node.name.value)

    graphql.visit(definition, Names())
    return used


def read(path: Path) -> Any:
    """What the platform answered to an introspection query, without its descriptions."""
    raw = path.read_bytes()
    answer = json.loads(
        gzip.decompress(raw) if path.suffix == ".gz" else raw,
        object_hook=lambda part: {name: value for name, value in part.items() if name not in LEFT_OUT},
    )
    return answer.get("data", answer)["__schema"]


if __name__ == "__main__":
    schema = Path(sys.argv[2])
    schema.write_text(reduced_schema(read(Path(sys.argv[1])), schema.read_text()))
