"""What the conformance suite expects to find by name, as far as a table of operations can offer it."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from holdfast.kit import mcp, modes
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.database import Reader
from holdfast.kit.operation import READS, Operation
from holdfast.kit.problems import ProblemType

INTENDED = ProblemType("intended", 409, "This tool intentionally returns an error for testing.", "Expect it.")


class Ask(Command):
    """Asks for nothing."""


class ReadTemplate(Command):
    id: Annotated[str, Meta(max_length=100, description="Any text, such as 123.")]


class Said(Struct):
    text: str


async def say(reader: Reader[Any], caller: Caller, command: Ask) -> Said:
    """Say something."""
    return Said("This is a simple text response for testing.")


async def fail(reader: Reader[Any], caller: Caller, command: Ask) -> Said:
    """Always refuse."""
    raise INTENDED()


async def read(reader: Reader[Any], caller: Caller, command: ReadTemplate) -> Said:
    """Read what stands at an address."""
    return Said(f"Data for {command.id}")


OPERATIONS = (
    Operation("test_simple_text", None, modes.read(say), READS),
    Operation("test_logging_tool", None, modes.read(say), READS),
    Operation("test_streaming_elicitation", None, modes.read(say), READS),
    Operation("test_error_handling", None, modes.read(fail), READS),
    Operation("read_template", None, modes.read(read), READS),
)
DOCUMENTS = tuple(
    mcp.Document(mcp.Entry(f"test://{name}", name, name, "A text for tests.", "text/plain"), "Hello.")
    for name in ("static-text", "watched-resource")
)
TEMPLATES = (mcp.Template("test://template/{id}/data", "read_template", "data", "Data", "Whatever is asked for."),)
