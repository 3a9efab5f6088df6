"""The reference in Markdown says what the OpenAPI document says, in tables a model can read."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from holdfast.events.documents import openapi, reference
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import COMMON_PROBLEMS
from holdfast.kit.operations.operation import Operation, read, single


class LookIntoJar(Command):
    jar_id: Annotated[int, Meta(ge=1, description="The jar.")]
    closely: Annotated[bool, Meta(description="With a spoon | or two.")] = False


class FillDescribedJar(Command):
    jar_id: int
    grams: int
    label: Annotated[str, Meta(max_length=20, description="What to write on it.")] | None = None


class DescribedJar(Struct):
    """A jar."""

    grams: Annotated[int, Meta(description="What is in it.")]
    kind: Literal["glass"] = "glass"


async def look(tx: Any, caller: Caller, command: LookIntoJar) -> DescribedJar:
    """Look into a jar."""
    raise NotImplementedError


async def fill(tx: Any, caller: Caller, command: FillDescribedJar) -> None:
    """Fill a jar."""
    raise NotImplementedError


async def list_labels(tx: Any, caller: Caller, command: Command) -> list[str]:
    """List labels."""
    raise NotImplementedError


SPEC = openapi.document(
    "Pantry",
    "1",
    "Jars.",
    "http://pantry.test",
    (
        Operation("look_into_jar", "GET /jars/{jar_id}", read(look), public=True),
        Operation("fill_jar", "PATCH /jars/{jar_id}", single(fill), body_member="jar", status=204),
        Operation("list_labels", "GET /labels", read(list_labels)),
    ),
    COMMON_PROBLEMS,
)


def test_an_operation_is_described_with_its_arguments_answers_and_errors() -> None:
    look, fill, labels = reference.operations(SPEC).strip().split("\n### ")

    errors = "400 bad_request; 404 not_found; 422 validation_failed; 500 internal_error; 503 service_unavailable"
    assert look.splitlines() == [
        "### GET /jars/{jar_id}",
        "",
        "`look_into_jar`, without a key. Look into a jar.",
        "",
        "| in the path | type | notes |",
        "|---|---|---|",
        "| `jar_id` | integer, at least 1 | The jar. |",
        "",
        "| in the query | type | notes |",
        "|---|---|---|",
        "| `closely` | boolean | Default false. With a spoon \\| or two. |",
        "",
        f"Answers 200: DescribedJar in `data`. Errors: {errors}.",
    ]
    assert "| in `jar` | type | notes |" in fill
    assert "| `grams` | integer | Required. |" in fill
    assert "| `label` | string or null, at most 20 characters | What to write on it. |" in fill
    assert "Answers 204: no body." in fill
    assert "Answers 200: array of string in `data`." in labels


def test_objects_of_answers_are_described_and_bodies_only_once() -> None:
    objects = reference.objects(SPEC)

    assert [line for line in objects.splitlines() if line.startswith("### ")] == ["### DescribedJar", "### Error"]
    assert "| `grams` | integer | What is in it. |" in objects
    assert "| `kind` | always glass |" in objects
