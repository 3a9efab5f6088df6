"""A person on the pages of their own data."""

import httpx2

from holdfast.events.people.model import DataLink, path
from tests.helpers.event_visitor import Visitor, field_value
from tests.helpers.events_service import Service


async def ask_for_own_data(service: Service, path: str, language: str = "en") -> httpx2.Response:
    """Ask for the link, on the page behind a link to a registration."""
    http = Visitor(service, language=language).http
    page = await http.get(f"{path}/data")
    return await http.post(f"{path}/data", data={"token": field_value(page, "token")})


async def sent_links(service: Service, email: str = "ann@example.com") -> str:
    """The path of the last link that was sent to a person."""
    rows = await service.run_sql(
        "select arguments from mails where kind = 'own_data' and recipient = %(email)s order by id desc", email=email
    )
    arguments = rows[0][0]
    return path(service.database.resources.secret, DataLink(arguments["user_id"], arguments["issued"]))


class OwnDataReader:
    """A browser that shows the page behind a link to a person's data."""

    def __init__(self, service: Service, link: str, language: str = "en") -> None:
        self.http = Visitor(service, language=language).http
        self.link = link
        self._fields: dict[str, str] = {}

    async def open(self) -> httpx2.Response:
        page = await self.http.get(self.link)
        if page.status_code == 200:
            self._fields = {name: field_value(page, name) for name in ("token", "held")}
        return page

    async def press(self, button: str, **fields: str) -> httpx2.Response:
        """Press `export` or `erase` on the page that was opened."""
        return await self.http.post(f"{self.link}/{button}", data={**self._fields, **fields})
