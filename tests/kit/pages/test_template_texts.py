"""Texts that are translated when a template is compiled read as those that the library looks up for each page."""

from typing import Any

import jinja2
import pytest
from jinja2.ext import Extension, InternationalizationExtension
from markupsafe import Markup

from holdfast.kit.pages.layout import TemplateTexts

GERMAN = {
    "Hello": "Hallo <b>du</b>",
    "Hello %(name)s": "Hallo %(name)s, %(name)s",
    "%(a)s of %(b)s": "von %(b)s: %(a)s",
    "100 %%": "100 %%",
    "%(number)s seat": "%(number)s Platz",
    "%(number)s seats": "%(number)s Plätze",
    "Bye": "Tschüss",
    "{{ name }}": "<i>{{ name }}</i>",
}


class GermanTexts:
    """The translations as a catalogue gives them."""

    def gettext(self, text: str) -> str:
        return GERMAN.get(text, text)

    def ngettext(self, singular: str, plural: str, number: int) -> str:
        return self.gettext(singular if number == 1 else plural)


def environment(extension: type[Extension], texts: Any) -> jinja2.Environment:
    made = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, extensions=[extension])
    made.policies["ext.i18n.trimmed"] = True
    made.extend(translate=texts.gettext)
    made.install_gettext_translations(texts, newstyle=True)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - the extension adds it
    return made


def shout(value: object) -> str:
    return f"{value}!"


VALUES = {"name": "<Ann>", "number": 3, "word": "Bye", "safe": Markup("<bdi>Ann</bdi>"), "shout": shout}


@pytest.mark.parametrize(
    "template",
    [
        "{{ _('Hello') }}",
        "{{ _('Hello') ~ '&' }}",
        "{{ _('Hello')|e }} {{ _('Hello')|upper }}",
        "<a title=\"{{ _('Bye') }}\">",
        "{% if _('Bye') == 'Tschüss' %}yes{% endif %}",
        "{{ _('Hello %(name)s', name=name) }}",
        "{{ _('100 %%') }} {% trans %}100 %{% endtrans %}",
        "{% trans %}Hello{% endtrans %}",
        "{% trans %}\n  Hello\n  {{ name }}\n{% endtrans %}",
        "{% trans a=name, b=number + 1 %}{{ a }} of {{ b }}{% endtrans %}",
        "{% trans a=shout(name), b=number %}{{ a }} of {{ b }}{% endtrans %}",
        "{% trans name=safe %}Hello {{ name }}{% endtrans %}",
        "{% trans number=number %}{{ number }} seat{% pluralize %}{{ number }} seats{% endtrans %}",
        "{% trans number=shout(number) %}{{ number }} seat{% pluralize %}{{ number }} seats{% endtrans %}",
        "{% macro greet(text) %}[{{ text }}]{% endmacro %}{{ greet(_('Hello')) }}",
        "{% for _ in [1, 2] %}{{ _ }}{% endfor %}",
        "{{ _(word) }} {{ {'a': _('Bye')}['a'] }}",
        "{{ _('{{ name }}') }}",
    ],
)
def test_a_text_is_the_one_that_the_library_looks_up(template: str) -> None:
    ours = environment(TemplateTexts, GermanTexts()).from_string(template)

    assert ours.render(VALUES) == environment(InternationalizationExtension, GermanTexts()).from_string(
        template
    ).render(VALUES)


class CountingTexts(GermanTexts):
    def __init__(self) -> None:
        self.count = 0

    def gettext(self, text: str) -> str:
        self.count += 1
        return super().gettext(text)


def test_a_text_is_looked_up_when_the_template_is_compiled_and_not_again() -> None:
    texts = CountingTexts()

    template = environment(TemplateTexts, texts).from_string("{{ _('Bye') }} {% trans %}Hello{% endtrans %}")

    assert texts.count == 2
    assert template.render() == template.render() == "Tschüss Hallo <b>du</b>"
    assert texts.count == 2
