"""Rendering a page: its headers for browsers, and the escaping of texts of strangers."""

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import httpx2
import pytest

from holdfast.kit.http.handler import Reply
from holdfast.kit.pages.language import ENGLISH, GERMAN, Language, language_of
from holdfast.kit.pages.layout import CONSOLE_STYLE, FRAME
from holdfast.kit.pages.site import Site, redirect
from tests.helpers.serving import application
from tests.kit.pages.form_requests import request

HELLO = """
{% extends "layout.html" %}
{% block title %}{{ name }}{% endblock %}
{% block body %}
<main><h1>{% trans name=name %}
  Good day,
  {{ name }}!
{% endtrans %}</h1></main>
{% endblock %}
"""
TRANSLATED = 'msgid "Good day, %(name)s!"\nmsgstr "Guten Tag, %(name)s!"\n'


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site with one template, its translation, and one script."""
    (tmp_path / "hello.html").write_text(HELLO)
    (tmp_path / "script.js").write_text("let a = 1;")
    (tmp_path / "translations").mkdir()
    (tmp_path / "translations/de.po").write_text(TRANSLATED)
    return Site("Tests", tmp_path)


def headers(reply: Reply) -> dict[str, str]:
    names = [name for name, _ in reply.headers]
    assert len(names) == len(set(names))
    return {name.decode(): value.decode() for name, value in reply.headers}


def policy(reply: Reply) -> dict[str, str]:
    return dict(directive.strip().split(" ", 1) for directive in headers(reply)["content-security-policy"].split(";"))


def test_a_page_may_load_from_its_own_site_only_and_has_no_inline_scripts(site: Site) -> None:
    assert policy(site.page("hello.html", name="Ada")) | {"style-src": ""} == {
        "default-src": "'none'",
        "style-src": "",
        "script-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }


def test_the_policy_allows_exactly_the_styles_of_our_pages(site: Site) -> None:
    page = site.page("hello.html", name="Ada")

    [style] = re.findall(r"<style>(.*?)</style>", page.content.decode(), re.DOTALL)
    digests = [b64encode(sha256(css.encode()).digest()).decode() for css in (style, CONSOLE_STYLE)]
    assert policy(page)["style-src"] == f"'self' 'sha256-{digests[0]}' 'sha256-{digests[1]}'"


def test_a_page_may_be_framed_by_other_sites_only_if_it_is_made_for_that(site: Site) -> None:
    page, framed = site.page("hello.html", name="Ada"), site.page("hello.html", framed=True, name="Ada")

    assert headers(page)["x-frame-options"] == "DENY"
    assert policy(framed) == policy(page) | {"frame-ancestors": "*"}
    assert "x-frame-options" not in headers(framed)
    assert b'class=" framed"' in framed.content
    assert b"framed" not in page.content.partition(b"<body")[2].partition(b">")[0]


def test_images_may_come_from_a_store_that_is_named(site: Site) -> None:
    page = site.page("hello.html", images="https://photos.example", name="Ada")

    assert policy(page)["img-src"] == "'self' https://photos.example"


def test_no_cache_keeps_a_page_or_takes_one_language_for_another(site: Site) -> None:
    sent = headers(site.page("hello.html", 201, language=GERMAN, headers=[(b"x-more", b"1")], name="Ada"))

    assert sent["cache-control"] == "no-store"
    assert (sent["content-language"], sent["vary"]) == ("de", "accept-language")
    assert sent["referrer-policy"] == "same-origin"
    assert sent["x-more"] == "1"


@pytest.mark.parametrize(("language", "greeting"), [(ENGLISH, "Good day, Ada!"), (GERMAN, "Guten Tag, Ada!")])
def test_a_text_over_several_lines_of_a_template_is_translated(site: Site, language: Language, greeting: str) -> None:
    page = site.page("hello.html", language=language, name="Ada").content.decode()

    assert f"<h1>{greeting}</h1>" in page
    assert f'<html lang="{language.code}">' in page


def test_a_page_offers_the_other_language_in_that_language(site: Site) -> None:
    page = site.page("hello.html", language=GERMAN, name="Ada").content.decode()

    assert '<nav class="languages" aria-label="Sprache">' in page
    assert re.findall(r"<a [^>]*hreflang[^>]*>\w+</a>", page) == [
        '<a href="?lang=en" hreflang="en" lang="en">English</a>'
    ]


@pytest.mark.parametrize("language", [ENGLISH, GERMAN])
def test_texts_of_strangers_are_escaped_in_a_page(site: Site, language: Language) -> None:
    page = site.page("hello.html", language=language, name="<script>alert('1')</script>%(name)s{{ 1 }}").content

    assert b"<script" not in page
    assert page.count(b"&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;%(name)s{{ 1 }}") == 2


def test_texts_of_the_code_are_translated_too(site: Site) -> None:
    chosen = language_of(request(query=b"lang=de"))

    assert site.texts(chosen).gettext("Good day, %(name)s!") == "Guten Tag, %(name)s!"
    assert site.texts(GERMAN).ngettext("%(n)s seat", "%(n)s seats", 2) == "%(n)s seats"
    assert site.texts(ENGLISH).gettext("Good day, %(name)s!") == "Good day, %(name)s!"


async def test_an_asset_is_immutable_under_an_address_that_changes_with_its_content(tmp_path: Path) -> None:
    (tmp_path / "script.js").write_text("let a = 1;")
    before = Site("Tests", tmp_path)
    app = application(*before.assets("script.js", "icon.svg"))
    address, icon = before.asset("script.js"), before.asset("icon.svg")
    (tmp_path / "script.js").write_text("let a = 2;")
    after = Site("Tests", tmp_path)

    assert re.fullmatch(r"/assets/[0-9a-f]{16}/script\.js", address)
    assert after.asset("script.js") != address
    assert after.asset("icon.svg") == icon
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://tests.example") as http:
        script, image, changed = [await http.get(url) for url in (address, icon, after.asset("script.js"))]
    assert (script.status_code, script.text) == (200, "let a = 1;")
    assert script.headers["content-type"].startswith("text/javascript")
    assert image.headers["content-type"].startswith("image/svg+xml")
    for response in (script, image):
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert response.headers["x-content-type-options"] == "nosniff"
    assert changed.status_code == 404


@pytest.mark.parametrize(
    ("address", "location"),
    [
        ("/events/7?lang=de#top", "/events/7?lang=de#top"),
        ("https://shop.example/sale?a=1%202&token=a.b-c_d~e", "https://shop.example/sale?a=1%202&token=a.b-c_d~e"),
        ("/events/7\r\nSet-Cookie: a=b", "/events/7%0D%0ASet-Cookie:%20a=b"),
        ("/Größe/\u202e\U0001f600", "/Gr%C3%B6%C3%9Fe/%E2%80%AE%F0%9F%98%80"),
        ('/"<>\\^`{|}', "/%22%3C%3E%5C%5E%60%7B%7C%7D"),
    ],
)
def test_a_redirect_leads_to_its_address_and_is_no_way_into_the_headers(address: str, location: str) -> None:
    sent = redirect(address)

    assert (sent.status, sent.content, headers(sent)["location"]) == (303, b"", location)
    assert headers(sent)["cache-control"] == "no-store"
    assert headers(sent)["referrer-policy"] == "same-origin"


def test_mails_have_the_colours_of_pages() -> None:
    letter, tokens = ((FRAME / "templates" / name).read_text() for name in ("letter.html", "tokens.css"))

    assert {*re.findall(r"#[0-9a-f]{6}\b", letter)} <= {*re.findall(r"#[0-9a-f]{6}\b", tokens)}


def test_a_script_is_sent_without_the_lines_that_are_only_comments(tmp_path: Path) -> None:
    (tmp_path / "script.js").write_text('// Why.\nlet a = "https://a.test"; // kept\n\n  // How.\nlet b = 2;\n')

    assert Site("Tests", tmp_path).content("script.js") == b'let a = "https://a.test"; // kept\n\nlet b = 2;\n'
