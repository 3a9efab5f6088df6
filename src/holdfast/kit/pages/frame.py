"""The frame of pages and mails: the templates and translations of a service, in the layout that all pages share."""

from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2
from babel.support import Translations
from markupsafe import Markup

from holdfast.kit.pages.language import ENGLISH, LANGUAGES, Language, translations

FRAME = Path(__file__).parent

STYLE = (FRAME / "templates/style.css").read_text(encoding="utf-8")


class Frame:
    """Templates, translations and assets.

    title      the name of the service
    folders    where its templates and assets are, named by their paths in one of them; in them are `translations`
    """

    def __init__(self, title: str, *folders: Path) -> None:
        self._folders = (*folders, FRAME / "templates")
        self.title = title

    def render(self, template: str, *, language: Language = ENGLISH, **values: Any) -> str:
        """A template in the layout of all pages, as text."""
        environment = self._environments[language.code]
        return environment.get_template(template).render(**{"framed": False, "language": language, **values})

    def texts(self, language: Language) -> Translations:
        """The translations of the texts that are not in templates: `gettext` and `ngettext`."""
        return translations(language.code, self._translated)

    @cache  # noqa: B019 - a site lasts as long as the process
    def asset(self, name: str) -> str:
        """The address of a file that pages use, such as `queues/room.js`. It changes when the content changes."""
        return f"/assets/{sha256(self._content(name)).hexdigest()[:16]}/{name}"

    def _content(self, name: str) -> bytes:
        return next(each / name for each in self._folders if (each / name).exists()).read_bytes()

    @cached_property
    def _translated(self) -> tuple[Path, ...]:
        """The folders with translations."""
        return FRAME, *sorted(each.parents[1] for folder in self._folders for each in folder.rglob("*.po"))

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
        known: dict[str, Any] = environment.globals
        known.update(asset=self.asset, languages=LANGUAGES, site=self.title, style=Markup(STYLE))  # noqa: S704 - ours
        return environment
