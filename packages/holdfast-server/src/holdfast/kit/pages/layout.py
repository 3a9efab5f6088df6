"""The frame of pages and mails: the templates of a service in the shared layout, and the translation of their texts.

Each language has its own environment of templates, so the translation of a text without a plural is known then:
`{% trans %}` becomes the pieces of the translation with the variables between them, and `_("...")` becomes a constant.
Texts with a plural are looked up when they are rendered. An icon with a fixed name becomes a constant too.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2
from babel.support import Translations
from jinja2 import nodes
from jinja2.ext import InternationalizationExtension
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser
from lucide.jinja import lucide
from markupsafe import Markup

from holdfast.kit.compat.jinja_environment import TemplateEnvironment
from holdfast.kit.contract.messages import message_text
from holdfast.kit.http.answers import NO_PARAMETERS, known_parameters
from holdfast.kit.pages.language import ENGLISH, LANGUAGES, Language, query_in_language, translations

_VARIABLE = re.compile(r"%\((\w+)\)s")

COMMENT_LINE = re.compile(rb"^[ \t]*//.*\n", re.MULTILINE)
"""A line of a script that is only a comment: a quarter of the bytes of some."""

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


FRAME = Path(__file__).parent

NO_FILTERS: Mapping[str, Callable[..., str]] = {}
KIT = FRAME.parent

NO_LABELS: Mapping[str, str] = {}


def _style(*names: str) -> str:
    """The style sheets of these names, without comments and unneeded space: each page carries them."""
    sheets = ((FRAME / "templates" / name).read_text(encoding="utf-8") for name in names)
    plain = re.sub(r"/\*.*?\*/", "", "\n".join(sheets), flags=re.DOTALL)
    return re.sub(r"\s*([{};])\s*", r"\1", plain).strip()


STYLE = _style("tokens.css", "style.css", "components.css", "layouts.css", "waiting.css")
"""The style of every page."""

CONSOLE_SHEETS = (
    "layout",
    "admin_frame",
    "navigation",
    "questions",
    "figures",
    "stock",
    "tables",
    "webhooks",
    "lists",
    "form_fields",
    "uploads",
    "poster",
    "overlays",
    "gate",
    "overview",
    "button_rows",
)
"""The style sheets of consoles, one for each component. Later ones win."""

CONSOLE_STYLE = _style(*(f"console/{name}.css" for name in CONSOLE_SHEETS))
"""What only the pages of consoles have in addition."""


class Frame:
    """Templates, translations and assets.

    title         the name of the service
    parameters    the query parameters that its pages read: links to other languages keep these, and no others
    filters       filters of its templates, by name
    folders       the folders with its templates, assets and `translations`; files are named by their paths in them
    """

    def __init__(
        self,
        title: str,
        *folders: Path,
        parameters: Collection[str] = NO_PARAMETERS,
        filters: Mapping[str, Callable[..., str]] = NO_FILTERS,
    ) -> None:
        self._filters = filters
        self._folders = (*folders, FRAME / "templates")
        self.title = title
        self.parameters = frozenset(parameters)

    def render(self, template: str, *, language: Language = ENGLISH, **values: Any) -> str:
        """A rendered template, in the layout of all pages.

        The value `query` is the query of the page's URL, of which links to other languages keep the known parameters.
        """
        environment = self._environments[language.code]
        return environment.get_template(template).render(
            **{"framed": False, "language": language, "query": b"", **values}
        )

    def _in_language(self, query: bytes, code: str) -> str:
        return query_in_language(known_parameters(query, self.parameters), code)

    def texts(self, language: Language) -> Translations:
        """The translations of texts outside templates, with `gettext` and `ngettext`."""
        return translations(language.code, self._translated)

    @cache  # noqa: B019 - a site lasts as long as the process
    def asset(self, name: str) -> str:
        """The path of an asset, such as `room.js` in the folder `queues`. It changes when the content changes."""
        return f"/assets/{sha256(self.content(name)).hexdigest()[:16]}/{name}"

    @cache  # noqa: B019 - a site lasts as long as the process
    def content(self, name: str) -> bytes:
        """The bytes of an asset: of a script without the lines that are only comments."""
        source = next(folder / name for folder in self._folders if (folder / name).exists()).read_bytes()
        return COMMENT_LINE.sub(b"", source) if name.endswith(".js") else source

    @cached_property
    def _translated(self) -> tuple[Path, ...]:
        """The folders with translations."""
        return KIT, *sorted(catalogue.parents[1] for folder in self._folders for catalogue in folder.rglob("*.po"))

    @cached_property
    def _environments(self) -> dict[str, jinja2.Environment]:
        return {code: self._environment(language) for code, language in LANGUAGES.items()}

    def _environment(self, language: Language) -> jinja2.Environment:
        environment = TemplateEnvironment(jinja2.FileSystemLoader(self._folders), TemplateTexts)
        environment.policies["ext.i18n.trimmed"] = True
        texts: Any = self.texts(language)

        def translate(text: str) -> str:
            return _unbroken(texts.gettext(text))

        def translate_plural(singular: str, plural: str, count: int) -> str:
            return _unbroken(texts.ngettext(singular, plural, count))

        environment.extend(translate=translate)
        environment.install_gettext_callables(translate, translate_plural, newstyle=True)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - the extension adds it
        environment.filters.update(self._filters)
        environment.filters["unbroken"] = _unbroken
        environment.filters["worded"] = partial(_messages_text, texts, language)
        variables: dict[str, Any] = environment.globals
        variables.update(asset=self.asset, languages=LANGUAGES, in_language=self._in_language, site=self.title)
        # For imported templates; a page has the language of its visitor, which links may name.
        variables["language"] = language
        variables["icon"] = icon
        variables["style"] = Markup(STYLE)  # noqa: S704 - ours
        variables["console_style"] = Markup(CONSOLE_STYLE)  # noqa: S704 - ours
        return environment


def _unbroken(text: str) -> str:
    """A text whose lines do not end within the word "e-mail"."""
    return text.replace("e-mail", "e\N{NON-BREAKING HYPHEN}mail").replace("E-Mail", "E\N{NON-BREAKING HYPHEN}Mail")


@cache
def icon(name: str) -> Markup:
    """An icon of Lucide as inline SVG, as large as the text around it. It fails if Lucide has none of this name."""
    drawn = lucide(name, size=None, **{"class": "icon", "aria-hidden": "true"})
    return Markup(" ".join(drawn.split()))  # noqa: S704 - drawn by the library


PREDICATES = frozenset("broke cannot has holds is must names needs redirects refuses takes took was".split())
"""Words with which a message begins that says something of its field, such as `must be in the future`."""


def _messages_text(
    texts: Translations,
    language: Language,
    messages: Sequence[str],
    labels: Mapping[str, str] = NO_LABELS,
    subject: str = "",
) -> str:
    """Messages in the language of a page, as sentences.

    labels     the English labels of fields, by name
    subject    the label of the field that they are about, in the language of the page
    """
    sentences: list[str] = []
    for message in messages:
        text = message_text(message, texts.gettext, labels, language.number)
        if text[:1].islower() and subject:
            if message.partition(" ")[0] in PREDICATES:
                label = subject.partition(" (")[0]  # without "(optional)"
                text = f"{texts.gettext('“%(label)s”') % {'label': label}} {text}"
            text = f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
        sentences.append(text)
    return _unbroken(("; " if not subject else " ").join(sentences))
