"""Pages for people: their layout, headers, languages and forms. Both services fill this frame."""

from holdfast.kit.pages.language import ENGLISH, GERMAN, LANGUAGES, Language, language_of
from holdfast.kit.pages.site import Site

__all__ = ["ENGLISH", "GERMAN", "LANGUAGES", "Language", "Site", "language_of"]
