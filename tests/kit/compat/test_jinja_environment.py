"""The environment of templates renders as that of the library does, with less work."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import pytest
from jinja2 import pass_context
from markupsafe import Markup

from holdfast.kit.compat.jinja_environment import TemplateEnvironment
from holdfast.kit.pages.language import GERMAN
from holdfast.kit.pages.layout import Frame

PACKAGES = Path(__file__).parents[3] / "packages"

MODULES = {
    "parts.html": "{% macro part(text, kind='') %}<b{{ ' ' ~ kind if kind }}>{{ text }}{{ mark }}</b>{% endmacro %}"
    "{% macro around(text) %}[{{ text }}: {{ caller(text) }}]{% endmacro %}"
    "{% macro several() %}{{ varargs|join(',') }} {{ kwargs.items()|list }}{% endmacro %}",
    "base.html": "{% block title %}{{ name }}{% endblock %}{% block body %}{% endblock %}",
    "inner.html": "{{ name }} {{ number }}",
}


class Written:
    """A value that is HTML by itself."""

    def __html__(self) -> str:
        return "<i>written</i>"


class Plain:
    def __str__(self) -> str:
        return "<plain>"


@pass_context
def name_of(context: Any, suffix: str) -> str:
    return f"{context['name']}{suffix}"


VALUES: dict[str, Any] = {
    "name": "<Ann & 'Bo'>",
    "number": 3,
    "is_known": True,
    "nothing": None,
    "safe": Markup("<bdi>Ann</bdi>"),
    "written": Written(),
    "plain": Plain(),
    "name_of": name_of,
    "texts": ["<a>", 1.5, None],
}


def library() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.DictLoader(MODULES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def our_environment() -> TemplateEnvironment:
    return TemplateEnvironment(jinja2.DictLoader(MODULES))


def render(environment: jinja2.Environment, template: str) -> str:
    known: dict[str, Any] = environment.globals
    known["mark"] = "<!>"
    return environment.from_string(template).render(VALUES)


@pytest.mark.parametrize(
    "template",
    [
        "{{ name }} {{ number }} {{ is_known }} {{ nothing }} {{ safe }} {{ written }} {{ plain }} {{ texts }}",
        "{{ name ~ safe }} {{ safe ~ name }} {{ name|e }} {{ name|upper }} {{ texts|join('<') }} {{ (name, 1) }}",
        "{% import 'parts.html' as parts %}{{ parts.part(name) }}{{ parts.part(safe, kind='large') }}",
        "{% from 'parts.html' import part %}{% for text in texts %}{{ loop.index }}{{ part(text) }}{% endfor %}",
        "{% from 'parts.html' import around %}{% call(text) around(name) %}{{ text }} {{ number }}{% endcall %}",
        "{% from 'parts.html' import several %}{{ several(1, '<', a=name) }}",
        "{% macro here(text) %}{{ text }} {{ name }}{% endmacro %}{{ here('<') }}{{ here(here('&')) }}",
        "{% extends 'base.html' %}{% block body %}{{ super() }}{{ self.title() }}{{ name_of('<') }}{% endblock %}",
        "{% for text in texts %}{% include 'inner.html' %}{% endfor %}",
        "{% with name = 'Bo' %}{{ name_of('') }}{% endwith %}",
        "{% autoescape false %}{{ name }}{{ number }}{% endautoescape %}{{ range(3)|list }} {{ dict(a=name) }}",
        "{% set row %}{{ name }}<br>{% endset %}{{ row }} {{ cycler('<a>', 'b').next() }} {{ 'a,b'.split(',') }}",
        "{% set last = namespace(text=name) %}{% for a in texts %}{% set last.text = a %}{% endfor %}{{ last.text }}",
    ],
)
def test_a_template_renders_as_with_the_library(template: str) -> None:
    assert render(our_environment(), template) == render(library(), template)


@pytest.mark.parametrize("template", ["{{ missing }}", "{{ missing() }}", "{{ name.missing }}", "{{ part(1, 2, 3) }}"])
def test_an_unknown_name_is_refused(template: str) -> None:
    with pytest.raises(jinja2.UndefinedError):
        render(our_environment(), template)


def test_an_imported_template_is_executed_once_for_all_that_import_it() -> None:
    executions: list[int] = []
    environment = TemplateEnvironment(
        jinja2.DictLoader({"parts.html": "{% set number = count() %}{% macro part() %}part{% endmacro %}"})
    )
    known: dict[str, Any] = environment.globals
    known["count"] = lambda: executions.append(1)
    template = environment.from_string("{% from 'parts.html' import part %}{{ part() }}")

    assert template.render() + template.render(name="Ann") == "partpart"
    assert len(executions) == 1


def test_templates_import_the_components_of_the_kit_without_their_context() -> None:
    # With it, all macros of the component's file are made again for each import.
    imports = re.compile(r"""from "(?:components|times)\.html" import [^%]*with context""")

    assert [path.name for path in PACKAGES.rglob("*.html") if imports.search(path.read_text(encoding="utf-8"))] == []


def test_a_moment_of_a_component_is_in_the_language_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text('{% from "times.html" import exact %}{{ exact(moment) }}')
    page = Frame("Site", tmp_path)
    moment = datetime(2026, 11, 21, 19, 30, tzinfo=UTC)

    assert "21. November 2026, 19:30\N{NO-BREAK SPACE}UTC" in page.render("page.html", language=GERMAN, moment=moment)
    assert "November 21, 2026, 7:30\N{NARROW NO-BREAK SPACE}PM\N{NO-BREAK SPACE}UTC" in page.render(
        "page.html", moment=moment
    )
