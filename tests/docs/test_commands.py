"""The page of all commands is made from them, and every command that a document shows is one that there is."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs import commands
from tests.docs.reading import FENCE, ROOT, pages, present

SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
COMMAND = re.compile(r"(?:^|(?<=[\s(;\"'])|(?<=bin/))holdfast(?= )([^|;)&>#\n]*)", re.MULTILINE)
"""What follows the name of the program, up to the end of the command in a shell."""

OTHER_NAMES = re.compile(r"(?:-[goU]|--user|--namespace|--tag|-n) +$")
"""What stands before `holdfast` where it is the name of a user, an image or a namespace."""

OTHER_TEXTS = ("promises v1",)
"""What follows `holdfast` in the first line of a signed note."""


def example_commands(text: str) -> Iterator[str]:
    """What a document shows as commands of the program, without the name of the program."""
    prose = FENCE.sub("", text)
    code = [re.sub(r"\\\n *", "", block) for block in FENCE.findall(text)]
    code += [" ".join(span.split()) for span in SPAN.findall(prose)]
    for part in code:
        for match in COMMAND.finditer(part):
            if not OTHER_NAMES.search(part[: match.start()]) and match[1].strip() not in OTHER_TEXTS:
                yield match[1].strip()


def fault(example: str) -> str | None:
    """What is wrong with a command that a document shows; None: nothing."""
    command: Any = commands.tree()
    words = example.replace("…", "...").partition(" #")[0].removeprefix("holdfast ").split()
    for number, word in enumerate(words):
        if not hasattr(command, "commands"):
            break
        if word in {"...", "SERVICE"} or word.startswith(("-", "$", "<")):
            return None
        if word not in command.commands:
            return f"no command `{word}`"
        command = command.commands[word]
        words[number] = ""
    options = {name for parameter in command.params for name in [*parameter.opts, *parameter.secondary_opts]}
    options_of_words = [word for word in words if word.startswith("--")]
    wrong_options = [word for word in options_of_words if word.partition("=")[0] not in options | {"--help"}]
    return f"no option {', '.join(wrong_options)}" if wrong_options else None


def test_the_page_of_commands_is_that_of_the_command_line() -> None:
    assert commands.PAGE.read_text(encoding="utf-8") == commands.page(), "python -m tests.docs.commands"


@pytest.mark.parametrize("page", pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_command_that_a_document_shows_exists(page: Path) -> None:
    faults = {example: error for example in example_commands(present(page)) if (error := fault(example))}

    assert faults == {}


def test_the_documents_show_most_commands() -> None:
    examples = [command for page in pages() if page != commands.PAGE for command in example_commands(present(page))]

    assert len(examples) > 80


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        ("events check", "no command `check`"),
        ("check --service events --pint clock", "no option --pint"),
        ("check --service events --point clock", None),
        ("... reseal", None),
    ],
)
def test_a_command_that_does_not_exist_is_found(example: str, expected: str | None) -> None:
    assert fault(example) == expected
