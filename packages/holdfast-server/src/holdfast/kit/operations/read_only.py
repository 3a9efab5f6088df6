"""Members of an answer that its caller sends back with an update although they cannot be changed."""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import invalid
from holdfast.kit.operations.operation import Operation
from holdfast.kit.operations.runner import Runner, RunOperation


class ReadOnlyMembers:
    """Refuses an update that names another value of what it cannot change.

    What changes by itself, such as a count, may have changed since it was read, and is not compared. Does nothing for
    an operation that takes back no members, or that no `GET` of the same path can be compared with.
    """

    def __init__(self, operation: Operation, runner: Runner) -> None:
        self._types = {name: kind for name, kind in operation.read_only_fields.items() if name not in operation.live}
        reading = runner.find_get_operation(operation) if self._types else None
        self._reading = reading
        self._run: RunOperation | None = runner.run_of(reading) if reading else None

    async def check(self, caller: Caller, command: Command, values: Mapping[str, Any]) -> None:
        """Raises `validation_failed` if one of the sent values is not the present one.

        values    the members of the body or the arguments, as they were sent
        """
        sent_values = {name: value for name, value in values.items() if name in self._types}
        if not sent_values or self._reading is None or self._run is None:
            return
        path = {name: getattr(command, name) for name in self._reading.path_fields}
        present = msgspec.to_builtins(await self._run(caller, self._reading.command(**path)))
        errors = {
            name: [message("cannot be changed: leave it out, or send what the service answers now")]
            for name, value in sent_values.items()
            if not _is_same(value, present.get(name), self._types[name])
        }
        if errors:
            raise invalid(errors)


def _is_same(sent_value: Any, present_value: Any, type_: Any) -> bool:
    """Whether two values in JSON are the same value of a type. The same moment can be written in several ways."""
    if sent_value == present_value:
        return True
    values = [msgspec.convert(value, type_, strict=False) for value in (sent_value, present_value)]
    return values[0] == values[1]
