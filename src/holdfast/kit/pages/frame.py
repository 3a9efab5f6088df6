"""The frame of pages and mails: the templates and translations of a service, in the layout that all pages share."""

from collections.abc import Mapping, Sequence
from functools import cache, cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2
from babel.support import Translations
from markupsafe import Markup

from holdfast.kit.pages.language import ENGLISH, LANGUAGES, Language, in_language, translations
from holdfast.kit.said import worded

FRAME = Path(__file__).parent
KIT = FRAME.parent

NO_LABELS: Mapping[str, str] = {}

STYLE = "\n".join((FRAME / "templates" / name).read_text(encoding="utf-8") for name in ("style.css", "waiting.css"))


class Frame:
    """Templates, translations and assets.

    title      the name of the service
    folders    where its templates and assets are, named by their paths in one of them; in them are `translations`
    """

    def __init__(self, title: str, *folders: Path) -> None:
        self._folders = (*folders, FRAME / "templates")
        self.title = title

    def render(self, template: str, *, language: Language = ENGLISH, **values: Any) -> str:
        """A template in the layout of all pages, as text.

        `query` among the values is what the links to other languages keep: that of the address of the page.
        """
        environment = self._environments[language.code]
        return environment.get_template(template).render(
            **{"framed": False, "language": language, "query": b"", **values}
        )

    def texts(self, language: Language) -> Translations:
        """The translations of the texts that are not in templates: `gettext` and `ngettext`."""
        return translations(language.code, self._translated)

    @cache  # noqa: B019 - a site lasts as long as the process
    def asset(self, name: str) -> str:
        """The address of a file that pages use, such as `queues/room.js`. It changes when the content changes."""
        return f"/assets/{sha256(self.content(name)).hexdigest()[:16]}/{name}"

    def content(self, name: str) -> bytes:
        """The bytes of such a file."""
        return next(each / name for each in self._folders if (each / name).exists()).read_bytes()

    @cached_property
    def _translated(self) -> tuple[Path, ...]:
        """The folders with translations."""
        return KIT, *sorted(each.parents[1] for folder in self._folders for each in folder.rglob("*.po"))

    @cached_property
    def _environments(self) -> dict[str, jinja2.Environment]:
        return {code: self._environment(language) for code, language in LANGUAGES.items()}

    def _environment(self, language: Language) -> jinja2.Environment:
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(self._folders),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
            extensions=["jinja2.ext.i18n"],
            auto_reload=False,
        )
        environment.policies["ext.i18n.trimmed"] = True
        texts: Any = self.texts(language)
        environment.install_gettext_translations(texts, newstyle=True)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - the extension adds it
        environment.filters["worded"] = partial(_worded, texts, language)
        known: dict[str, Any] = environment.globals
        known.update(asset=self.asset, languages=LANGUAGES, in_language=in_language, site=self.title)
        known["style"] = Markup(STYLE)  # noqa: S704 - ours
        return environment


def _worded(
    texts: Translations, language: Language, messages: Sequence[str], labels: Mapping[str, str] = NO_LABELS
) -> str:
    """Messages as a page says them. `labels`: what stands above the fields, in English, by their names."""
    return "; ".join(worded(each, texts.gettext, labels, language.number) for each in messages)
