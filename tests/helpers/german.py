"""Forms that are sent with something wrong, in English and in German: what they refuse must be said in both."""

import re
from collections.abc import Iterable, Iterator, Mapping
from html import unescape

import httpx2

ENGLISH = re.compile(r"\b(the|is|are|must|not|and|or|of|than|such|has|have|had|with|at|been|may|your|you|for)\b")
WRONG = ("", "§", "a\x00b", "-1", "0", "7", "9" * 19, "9" * 60, "1.5", "x" * 2_001, "2030-01-31", "9999-01-01T00:00")
"""Each of them is wrong in some field."""


def errors(page: httpx2.Response) -> list[str]:
    """What a page says is wrong."""
    elements = re.findall(r'<(\w+)[^>]* (?:class="error"|role="alert")[^>]*>(.*?)</\1>', page.text, re.DOTALL)
    texts = (" ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split()) for _, text in elements)
    # Some are empty, and filled by scripts.
    return [text for text in texts if text]


class Both:
    """Sends a form in both languages, and collects what is refused: pairs of the English and the German text."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http
        self.pairs = set[tuple[str, str]]()

    async def send(self, page: str, action: str = "", **fields: str) -> None:
        english, german = [await self._errors(page, action or page, fields, code) for code in ("en", "de")]
        assert len(english) == len(german) > 0, f"{page}: {fields} {english}"
        self.pairs |= {*zip(english, german, strict=True)}

    async def _errors(self, page: str, action: str, fields: Mapping[str, str], code: str) -> list[str]:
        language = {"Accept-Language": code}
        form_page = await self._http.get(page, headers=language)
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form_page.text))
        answer = await self._http.post(action, data={**hidden, **fields}, headers=language)
        assert answer.status_code in {409, 422}, f"{fields}: {answer.status_code}"
        return errors(answer)

    def check(self, *expected: str) -> None:
        """Every message is German, and these are among them."""
        for english, german in self.pairs:
            assert english != german
            assert not ENGLISH.search(german), german
        missing = {*expected} - {german for _, german in self.pairs}
        assert not missing, f"{missing} not in {sorted(german for _, german in self.pairs)}"


def wrong(names: Iterable[str]) -> Iterator[dict[str, str]]:
    """Forms with the same wrong value in each field."""
    return (dict.fromkeys(names, value) for value in WRONG)
