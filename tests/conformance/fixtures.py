"""What the conformance suite expects to find by name, as far as a table of operations can offer it."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from holdfast.kit import mcp
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import ProblemType
from holdfast.kit.operations import operation
from holdfast.kit.operations.operation import READS, Operation
from holdfast.kit.postgres.database import Reader

INTENDED = ProblemType("intended", 409, "This tool intentionally returns an error for testing.", "Expect it.")


class Ask(Command):
    """Asks for nothing."""


class ReadTemplate(Command):
    id: Annotated[str, Meta(max_length=100, description="Any text, such as 123.")]


class Answer(Struct):
    text: str


async def say(reader: Reader[Any], caller: Caller, command: Ask) -> Answer:
    """Say something."""
    return Answer("This is a simple text response for testing.")


async def fail(reader: Reader[Any], caller: Caller, command: Ask) -> Answer:
    """Always refuse."""
    raise INTENDED()


async def read(reader: Reader[Any], caller: Caller, command: ReadTemplate) -> Answer:
    """Read what stands at an address."""
    return Answer(f"Data for {command.id}")


OPERATIONS = (
    Operation("test_simple_text", None, operation.read(say), READS),
    Operation("test_logging_tool", None, operation.read(say), READS),
    Operation("test_streaming_elicitation", None, operation.read(say), READS),
    Operation("test_error_handling", None, operation.read(fail), READS),
    Operation("read_template", None, operation.read(read), READS),
)
DOCUMENTS = tuple(
    mcp.Document(mcp.ResourceEntry(f"test://{name}", name, name, "A text for tests.", "text/plain"), "Hello.")
    for name in ("static-text", "watched-resource")
)
TEMPLATES = (mcp.Template("test://template/{id}/data", "read_template", "data", "Data", "Whatever is asked for."),)
