"""/agents.md as an agent reads it: addresses, bodies, tables, lines for a shell."""

import itertools
import re
import shlex
from typing import NamedTuple


class Request(NamedTuple):
    """A request as the text prints it. `$NAMES` in the body are the reader's to fill in."""

    url: str
    headers: dict[str, str]
    body: str


class Handbook:
    """The text, read."""

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def tools(self) -> list[str]:
        """The names of the tools it tells of."""
        return [name for name, _ in self.table("tool", "what it does")]

    def code(self, language: str) -> list[str]:
        """The blocks in a language, in order."""
        return re.findall(rf"^```{language}\n(.*?)^```$", self.text, re.DOTALL | re.MULTILINE)

    def request(self, heading: str) -> Request:
        """The first request of a section."""
        section = Handbook(self.text.partition(f"{heading}\n")[2])
        words = shlex.split(section.code("sh")[0], comments=True)
        options = [*itertools.pairwise(words[words.index("-s") :])]
        headers = dict(value.split(": ", 1) for option, value in options if option == "-H")
        return Request(dict(options)["-s"], headers, dict(options)["-d"])

    def table(self, *head: str) -> list[list[str]]:
        """The rows under a head, without the marks around what is code."""
        rows = self.text.partition(f"| {' | '.join(head)} |\n")[2].partition("\n\n")[0].splitlines()[1:]
        return [[cell.strip(" `") for cell in row.strip("|").split(" | ")] for row in rows]
