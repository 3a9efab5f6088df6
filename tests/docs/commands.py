"""The page of all commands, made from the command line itself.

`python -m tests.docs.commands` writes `docs/commands.md`.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import typer

from holdfast.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"

TITLES = {"events": "Holdfast Events", "inventory": "Holdfast Inventory"}
"""How each service calls itself in the help of its commands."""

INTRODUCTION = """\
# All commands
<!-- python -m tests.docs.commands -->

This is what `--help` of each command prints. The command is `.venv/bin/holdfast` in a checkout, and
[`/opt/holdfast/bin/holdfast`](deploy.md#installing) after an installation. Commands read the [settings](settings.md)
of the services from their environment, and most act on the database directly: a service need not run. `holdfast
--version` prints the version and the newest migrations.
"""

OF_EACH_SERVICE = """\
`SERVICE` is `events` or `inventory`.
"""


class Command(NamedTuple):
    """A command as its help shows it.

    usage      the arguments, such as `SLUG`
    text       what it does
    options    the text of each argument and option that has one, by how it is written
    """

    usage: str
    text: str
    options: Mapping[str, str]

    def without_service(self, service: str) -> "Command":
        """The command with the name of its service left out, to compare it with that of the other service."""
        return self._replace(text=self.text.replace(TITLES[service], "the service"))

    def without_defaults(self) -> object:
        """What the command of both services has in common, if it is one: defaults, such as ports, may differ."""
        return self.usage, self.text, {name: text.partition(" Default:")[0] for name, text in self.options.items()}


def tree() -> Any:
    """The command line as typer runs it."""
    return typer.main.get_command(app)


def parameters(command: Any) -> list[Any]:
    """The arguments and options of a command."""
    return [parameter for parameter in command.params if not parameter.hidden and parameter.name != "help"]


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Every command of a group and of the groups in it, by its words."""
    for name, command in cast("Mapping[str, Any]", group.commands).items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        elif not command.hidden:
            yield (*words, name), _description(command)


def _description(command: Any) -> Command:
    usage: list[str] = []
    options: dict[str, str] = {}
    for parameter in parameters(command):
        is_option = parameter.opts[0].startswith("-")
        metavar = parameter.metavar or parameter.name.upper()
        if is_option:
            names = " / ".join([*parameter.opts, *parameter.secondary_opts])
            name = names if parameter.is_flag else f"{names} {metavar}"
        else:
            name = metavar
            usage.append(metavar if parameter.required else f"[{metavar}]")
        if parameter.help:
            options[name] = _one_line(parameter.help) + _default(parameter)
        else:
            assert not is_option, f"{parameter.opts[0]} has no help"
    return Command(" ".join(usage), _one_line(command.help), options)


def _default(parameter: Any) -> str:
    value: Any = parameter.default
    if getattr(parameter, "is_flag", False):
        return " It is the default." if parameter.secondary_opts and value else ""
    return f" Default: `{value}`." if isinstance(value, str | int) and value != "" else ""


def _one_line(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").strip()


def page() -> str:
    """The text of the page."""
    everything = dict(commands(tree()))
    of_service = {
        service: {
            words[1:]: command.without_service(service) for words, command in everything.items() if words[0] == service
        }
        for service in TITLES
    }
    shared = {
        words: command
        for words, command in of_service["events"].items()
        if (other := of_service["inventory"].get(words)) and other.without_defaults() == command.without_defaults()
    }
    parts = [INTRODUCTION, "## Both services\n"]
    parts += [_block(("holdfast", *words), command) for words, command in everything.items() if words[0] not in TITLES]
    parts += ["## Each service\n", OF_EACH_SERVICE]
    for words, command in shared.items():
        other = of_service["inventory"][words]
        options = {name: _with_default_of(other.options[name], text) for name, text in command.options.items()}
        parts.append(_block(("holdfast", "SERVICE", *words), command._replace(options=options)))
    for service in TITLES:
        parts.append(f"## {service.capitalize()}\n")
        parts += [
            _block(("holdfast", service, *words), command)
            for words, command in of_service[service].items()
            if words not in shared
        ]
    return "\n".join(parts)


def _with_default_of(inventory: str, text: str) -> str:
    """The text of an option, with the default that the command of inventory has, if it is another one."""
    return text if text == inventory else f"{text[:-1]} (inventory: {inventory.rsplit(maxsplit=1)[-1][:-1]})."


def _block(words: tuple[str, ...], command: Command) -> str:
    usage = f" {command.usage}" if command.usage else ""
    rows = "".join(f"* `{name}`: {text}\n" for name, text in command.options.items())
    return f"### `{' '.join(words)}{usage}`\n{command.text}\n" + (f"\n{rows}" if rows else "")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
