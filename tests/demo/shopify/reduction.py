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
from pathlib import Path
from typing import Any

from graphql import parse
from graphql.language import InterfaceTypeDefinitionNode, ObjectTypeDefinitionNode

Type = dict[str, Any]

BUILT_IN = {"ID", "Int", "Float", "String", "Boolean"}


def reduced(introspection: Type, schema: str) -> str:
    """The platform's schema with only the types and fields that another schema names. Raises `KeyError` for others."""
    types = {type_["name"]: type_ for type_ in introspection["types"]}
    fields = {
        definition.name.value: [field.name.value for field in definition.fields or ()]
        for definition in parse(schema).definitions
        if isinstance(definition, ObjectTypeDefinitionNode | InterfaceTypeDefinitionNode)
    }
    used: set[str] = set()
    written = [_schema(introspection), *(_directive(directive) for directive in _directives(introspection, used))]
    written += [_with_fields(types[name], names, fields, used) for name, names in sorted(fields.items())]
    done = set(fields) | BUILT_IN
    while left := sorted(used - done):
        done.update(left)
        written += [_without_fields(types[name], fields, used) for name in left]
    return "\n".join(written)


def _schema(introspection: Type) -> str:
    query, mutation = introspection["queryType"]["name"], introspection["mutationType"]["name"]
    return f"schema {{\n  query: {query}\n  mutation: {mutation}\n}}\n"


def _directives(introspection: Type, used: set[str]) -> list[Type]:
    """The platform's own directives, and what types their arguments have."""
    directives = [directive for directive in introspection["directives"] if directive["name"] == "idempotent"]
    used.update(_named(argument["type"]) for directive in directives for argument in directive["args"])
    return directives


def _directive(directive: Type) -> str:
    return f"directive @{directive['name']}{_arguments(directive['args'])} on {' | '.join(directive['locations'])}\n"


def _with_fields(type: Type, names: list[str], kept_fields: dict[str, list[str]], used: set[str]) -> str:
    known = {field["name"]: field for field in type["fields"]}
    lines: list[str] = []
    for name in names:
        field = known[name]
        used.add(_named(field["type"]))
        used.update(_named(argument["type"]) for argument in field["args"])
        lines.append(f"  {name}{_arguments(field['args'])}: {_written(field['type'])}")
    interfaces = sorted(
        interface["name"]
        for interface in type["interfaces"] or ()
        if {*kept_fields.get(interface["name"], ["(not kept)"])} <= {*names}
    )
    implements = f" implements {' & '.join(interfaces)}" if interfaces else ""
    keyword = "interface" if type["kind"] == "INTERFACE" else "type"
    return f"{keyword} {type['name']}{implements} {{\n" + "\n".join(lines) + "\n}\n"


def _without_fields(type: Type, kept_fields: dict[str, list[str]], used: set[str]) -> str:
    name = type["name"]
    match type["kind"]:
        case "UNION":
            members = [member["name"] for member in type["possibleTypes"] if member["name"] in kept_fields]
            return f"union {name} = {' | '.join(members)}\n"
        case "SCALAR":
            return f"scalar {name}\n"
        case "ENUM":
            return f"enum {name} {{\n" + "\n".join(f"  {value['name']}" for value in type["enumValues"]) + "\n}\n"
        case "INPUT_OBJECT":
            used.update(_named(field["type"]) for field in type["inputFields"])
            return f"input {name} {{\n" + "\n".join(f"  {_argument(field)}" for field in type["inputFields"]) + "\n}\n"
        case kind:
            raise KeyError(f"{kind} {name} is the type of a field; the schema has to say which of its fields it keeps.")


def _arguments(arguments: list[Type]) -> str:
    return f"({', '.join(_argument(argument) for argument in arguments)})" if arguments else ""


def _argument(argument: Type) -> str:
    default = f" = {argument['defaultValue']}" if argument["defaultValue"] is not None else ""
    return f"{argument['name']}: {_written(argument['type'])}{default}"


def _written(type: Type) -> str:
    match type["kind"]:
        case "NON_NULL":
            return f"{_written(type['ofType'])}!"
        case "LIST":
            return f"[{_written(type['ofType'])}]"
        case _:
            return type["name"]


def _named(type: Type) -> str:
    return _named(type["ofType"]) if type["ofType"] else type["name"]


def read(path: Path) -> Type:
    """What the platform answered to an introspection query."""
    raw = path.read_bytes()
    answer = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return answer.get("data", answer)["__schema"]


if __name__ == "__main__":
    schema = Path(sys.argv[2])
    schema.write_text(reduced(read(Path(sys.argv[1])), schema.read_text()))
