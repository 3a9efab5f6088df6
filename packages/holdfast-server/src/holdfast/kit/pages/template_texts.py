"""Translates the texts of templates when a template is compiled, not each time that it is rendered.

Each language has its own environment of templates, so the translation of a text without a plural is known then:
`{% trans %}` becomes the pieces of the translation with the variables between them, and `_("...")` becomes a constant.
Texts with a plural are looked up when they are rendered. An icon with a fixed name becomes a constant too.
"""

import re
from collections.abc import Iterator
from typing import Any

from jinja2 import nodes
from jinja2.ext import InternationalizationExtension
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser

_VARIABLE = re.compile(r"%\((\w+)\)s")


_FIXED = ("_", "icon")
"""The functions whose value is the same each time, in one language."""

_CALL = ["name", "lparen", "string", "rparen"]


class TemplateTexts(InternationalizationExtension):
    """The environment needs the attribute `translate`: a function from an English text to its translation."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        """Replace `_("...")` and `icon("...")` by `("..."|safe)`, which the compiler makes a constant: both are HTML.

        Not beside `~`: the compiler would join constants without knowing that one is HTML.
        """
        tokens = [*stream]
        position = 0
        while position < len(tokens):
            call = tokens[position : position + 4]
            is_text = call[0].value in _FIXED and [token.type for token in call] == _CALL
            if is_text and "tilde" not in {token.type for token in (tokens[position - 1], tokens[position + 4])}:
                text = self._icon(call[2].value) if call[0].value == "icon" else self._translated(call[2].value) % {}
                for type, value in (("lparen", "("), ("string", text), ("pipe", "|"), ("name", "safe")):
                    yield Token(call[0].lineno, type, value)
                position += 3
            yield tokens[position]
            position += 1

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        parsed = super().parse(parser)
        for node in parsed if isinstance(parsed, list) else [parsed]:
            if isinstance(node, nodes.Output):
                node.nodes = self._pieces(node.nodes)
        return parsed

    def _pieces(self, parsed: list[nodes.Expr]) -> list[nodes.Expr]:
        """The pieces of a translation. `parsed`: the call that would look it up, with the variables as arguments."""
        [call] = parsed
        if not isinstance(call, nodes.Call) or not isinstance(call.node, nodes.Name) or call.node.name != "gettext":
            return parsed
        [text] = call.args
        assert isinstance(text, nodes.Const)
        variables = {keyword.key: keyword.value for keyword in call.kwargs}
        # Every second piece is the name of a variable.
        pieces = _VARIABLE.split(self._translated(text.value))
        return [
            variables[piece] if number % 2 else nodes.TemplateData(piece % {}) for number, piece in enumerate(pieces)
        ]

    def _icon(self, name: str) -> str:
        environment: Any = self.environment
        return environment.globals["icon"](name)

    def _translated(self, text: str) -> str:
        environment: Any = self.environment
        return environment.translate(text)
