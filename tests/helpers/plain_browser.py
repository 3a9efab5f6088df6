"""A browser that runs no scripts: it follows links, sends forms, keeps cookies, and looks at what each page offers.

A page whose controls need a script, and are seen without one, is a failure: they could not be used.
"""

import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import TypeAlias
from urllib.parse import urljoin, urlsplit

import httpx2
from starlette.types import ASGIApp

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
"""The elements that have no end tag."""

UNSEEN = frozenset({"head", "script", "style", "template"})
"""The elements whose content is not shown."""

File: TypeAlias = tuple[str, bytes, str]
"""The name, the content and the media type of a file."""


class Element:
    """An element of a page. `parent` is None for the root."""

    def __init__(self, tag: str, attributes: Mapping[str, str], parent: "Element | None") -> None:
        self.tag = tag
        self.attributes = attributes
        self.parent = parent
        self.children: list[Element | str] = []

    def __str__(self) -> str:
        return f"<{self.tag} {dict(self.attributes)}>"

    def get(self, name: str) -> str:
        return self.attributes.get(name, "")

    def walk(self) -> Iterator["Element"]:
        """The elements in it, in their order."""
        for child in self.children:
            if isinstance(child, Element):
                yield child
                yield from child.walk()

    def ancestors(self) -> Iterator["Element"]:
        element = self.parent
        while element:
            yield element
            element = element.parent

    @property
    def is_seen(self) -> bool:
        return not any(
            "hidden" in element.attributes or element.tag in UNSEEN or _is_hidden_by_style(element)
            for element in (self, *self.ancestors())
        )

    @property
    def text(self) -> str:
        """The text that is seen in it, with single spaces."""
        return " ".join(self._raw_text().split())

    def _raw_text(self) -> str:
        if "hidden" in self.attributes or self.tag in UNSEEN:
            return ""
        return " ".join(child if isinstance(child, str) else child._raw_text() for child in self.children)


def _is_hidden_by_style(element: Element) -> bool:
    """Whether the style of browsers hides it, or ours where there are no scripts."""
    return (element.tag == "dialog" and "open" not in element.attributes) or "scripted" in element.get("class").split()


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = self.here = Element("", {}, None)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, self.here)
        self.here.children.append(element)
        if tag not in VOID:
            self.here = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.here.children.append(Element(tag, {name: value or "" for name, value in attrs}, self.here))

    def handle_endtag(self, tag: str) -> None:
        open_elements = [self.here, *self.here.ancestors()]
        closed = next((element for element in open_elements if element.tag == tag), None)
        if closed and closed.parent:
            self.here = closed.parent

    def handle_data(self, data: str) -> None:
        self.here.children.append(data)


class PlainPage:
    """A page that is open. `url`: its address."""

    def __init__(self, url: str, html: str) -> None:
        tree = _Tree()
        tree.feed(html)
        self.url = url
        self.root = tree.root
        self.elements = [*tree.root.walk()]

    @property
    def text(self) -> str:
        """The text of its main part."""
        return self.one("main").text

    def find(self, tag: str, **attributes: str) -> list[Element]:
        """The seen elements with a tag and attributes; the values are regular expressions. `class_` is the class."""
        return [
            element
            for element in self.elements
            if element.tag == tag
            and element.is_seen
            and all(re.search(pattern, element.get(name.rstrip("_"))) for name, pattern in attributes.items())
        ]

    def one(self, tag: str, **attributes: str) -> Element:
        """The first of them."""
        elements = self.find(tag, **attributes)
        assert elements, f"{self.url} shows no {tag} with {attributes}: {self.root.text}"
        return elements[0]

    def form_of(self, control: Element) -> Element | None:
        if id := control.get("form"):
            return next((form for form in self.elements if form.tag == "form" and form.get("id") == id), None)
        return next((element for element in control.ancestors() if element.tag == "form"), None)

    def useless_controls(self) -> list[str]:
        """The seen controls that do nothing without a script."""
        return [str(element) for element in self.elements if element.is_seen and self._is_useless(element)]

    def _is_useless(self, element: Element) -> bool:
        if element.tag in {"input", "select", "textarea", "button"}:
            is_bare_button = element.tag == "button" and element.get("type") in {"button", "reset"}
            return is_bare_button or self.form_of(element) is None
        if element.tag == "a":
            href = element.get("href")
            return not href or href == "#" or href.startswith("javascript:")
        if element.tag == "form":
            return not any(self.form_of(button) is element for button in self.find("button"))
        return element.tag in {"video", "audio"} or not element.attributes.keys().isdisjoint(
            {"onclick", "contenteditable", "draggable"}
        )


class PlainBrowser:
    """A person at a browser without scripts, who sees the application at `base_url`, and other sites over the network.

    page    the page that is open
    """

    def __init__(self, app: ASGIApp, base_url: str, *, others: str = "") -> None:
        transport = httpx2.ASGITransport(app, client=("127.0.0.1", 1))
        # No connection is kept, so that none has to be closed.
        network = httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_keepalive_connections=0))
        self.http = httpx2.AsyncClient(
            transport=transport,
            mounts={others: network} if others else None,
            base_url=base_url,
            follow_redirects=True,
            headers={"Accept": "text/html", "Accept-Language": "en", "User-Agent": "Firefox of a test"},
        )
        self.page = PlainPage(base_url, "")

    async def open(self, address: str) -> PlainPage:
        return self._show(await self.http.get(urljoin(self.page.url, address)))

    async def click(self, **attributes: str) -> PlainPage:
        """Follow the first seen link with these attributes, which are regular expressions."""
        return await self.open(self.page.one("a", **attributes).get("href"))

    async def reload(self) -> PlainPage:
        """What the page does by itself after a while."""
        [refresh] = [element for element in self.page.elements if element.get("http-equiv") == "refresh"]
        _, _, address = refresh.get("content").partition("url=")
        return await self.open(address or self.page.url)

    async def send(
        self,
        button: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        files: Mapping[str, File] | None = None,
        **more: str,
    ) -> PlainPage:
        """Fill in fields of a form, and press its button: the first seen one with these attributes of `main`.

        button    attributes of the button or `action` of its form, as regular expressions
        fields    texts of fields, values of selects and radio buttons; those of checkboxes, empty for no tick
        """
        pressed, form = self._button(button or {})
        values = dict(self._values(form))
        for name, value in {**(fields or {}), **more}.items():
            controls = [
                control
                for control in self.page.elements
                if control.get("name") == name and self.page.form_of(control) is form
            ]
            assert any(control.is_seen and control.get("type") != "hidden" for control in controls), name
            values[name] = value
        if pressed.get("name"):
            values[pressed.get("name")] = pressed.get("value")
        address = urljoin(self.page.url, pressed.get("formaction") or form.get("action"))
        if form.get("method").lower() == "post":
            answer = await self.http.post(address, data=values, files=files)
        else:
            answer = await self.http.get(address, params=values)
        return self._show(answer)

    def _button(self, attributes: Mapping[str, str]) -> tuple[Element, Element]:
        """The first button of the main part with these attributes, and its form."""
        of_button = {name: pattern for name, pattern in attributes.items() if name != "action"}
        for button in self.page.find("button", **of_button):
            form = self.page.form_of(button)
            if (
                form
                and any(element.tag == "main" for element in button.ancestors())
                and re.search(attributes.get("action", ""), form.get("action"))
            ):
                return button, form
        raise AssertionError(f"{self.page.url} has no button with {attributes}: {self.page.root.text}")

    def _values(self, form: Element) -> Iterator[tuple[str, str]]:
        """What the form sends if nothing is filled in."""
        for control in self.page.elements:
            name, kind = control.get("name"), control.get("type")
            if not name or self.page.form_of(control) is not form or "disabled" in control.attributes:
                continue
            if control.tag == "textarea":
                yield name, "".join(child for child in control.children if isinstance(child, str)).removeprefix("\n")
            elif control.tag == "select":
                options = [option for option in control.walk() if option.tag == "option"]
                chosen = [option for option in options if "selected" in option.attributes] or options[:1]
                yield from ((name, option.get("value")) for option in chosen)
            elif control.tag == "input" and kind != "file":
                if kind not in {"checkbox", "radio"}:
                    yield name, control.get("value")
                elif "checked" in control.attributes:
                    yield name, control.get("value") or "on"

    def _show(self, answer: httpx2.Response) -> PlainPage:
        assert answer.status_code < 500, answer.text
        assert answer.headers["content-type"].startswith("text/html"), answer.text
        self.page = PlainPage(str(answer.url), answer.text)
        self.status = answer.status_code
        assert self.page.useless_controls() == [], self.page.url
        return self.page

    @property
    def state(self) -> str:
        """The state that the page of a registration or a waiting room has."""
        return self.page.one("main").get("data-state")

    @property
    def path(self) -> str:
        return urlsplit(self.page.url).path
