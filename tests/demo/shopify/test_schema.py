"""The schema that requests are held to: a part of the platform's own, made by a program."""

from typing import Any

from graphql import build_schema, introspection_from_schema, validate_schema

from holdfast_demo.shopify.admin_api.cost import FILE, schema
from tests.demo.shopify.reduction import reduced_schema


def test_the_schema_contradicts_itself_nowhere() -> None:
    assert validate_schema(schema()) == []


def test_the_schema_demands_idempotency_and_a_compared_quantity_of_level_changes() -> None:
    text = FILE.read_text()

    assert "directive @idempotent(key: String!) on FIELD" in text
    assert "changeFromQuantity: Int\n" in text
    assert "compareQuantity" not in text


def test_a_schema_that_is_reduced_again_stays_as_it_is() -> None:
    known: Any = introspection_from_schema(build_schema(FILE.read_text()))

    assert reduced_schema(known["__schema"], FILE.read_text()) == FILE.read_text()


def test_a_reduced_schema_has_whole_arguments_and_inputs_and_only_the_named_fields() -> None:
    full_schema = """
        schema { query: Query mutation: Mutation }
        type Query { shop(at: When, size: Size = SMALL): Shop! secret: Secret }
        type Mutation { nothing: Int }
        type Shop { id: ID! name: String owner: Secret }
        type Secret { word: String }
        input When { day: Day! or: [When!] }
        scalar Day
        enum Size { SMALL LARGE }
    """
    known: Any = introspection_from_schema(build_schema(full_schema))
    schema = "type Query { shop: Any } type Mutation { nothing: Any } type Shop { id: Any name: Any }"

    written = reduced_schema(known["__schema"], schema)

    assert "shop(at: When, size: Size = SMALL): Shop!" in written
    assert "or: [When!]" in written
    assert "scalar Day" in written
    assert "LARGE" in written
    assert "ecret" not in written
