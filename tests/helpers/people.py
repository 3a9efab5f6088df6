"""People with registrations, and a look through everything that is stored."""

import re
from typing import Any

from holdfast.events import ownership
from holdfast.events.people import operations
from holdfast.events.people.model import AccountSelector, Erasure, Export
from tests.helpers.event_visitor import Visitor
from tests.helpers.events_service import Client, Service

BOB = AccountSelector(email="bob@example.com")

ANN = AccountSelector(email="ann@example.com")


async def erase(service: Service, selector: AccountSelector = ANN) -> Erasure:
    return await service.database.transact(lambda tx: ownership.erase(tx, selector))


async def sign_up(service: Service, event: dict[str, Any], *names: str) -> None:
    """Register people on the form, each with a name of its own, and settle them."""
    for name in names:
        await Visitor(service).register(event["id"], f"{name}@example.com", name=f"{name.title()} Example")
    await service.settle()


async def end_event(service: Service, event: dict[str, Any]) -> None:
    """Let an event have taken place yesterday."""
    await service.run_sql("update events set datetime = now() - interval '1 day' where id = %(id)s", id=event["id"])


async def handle_of(service: Service, email: str) -> str:
    """The public id of a person."""
    [(public_id,)] = await service.run_sql("select public_id from users where email = %(email)s", email=email)
    return public_id


async def list_registrations(ada: Client, event: dict[str, Any]) -> list[dict[str, Any]]:
    return (await ada.get(f"/api/registrations?event_id={event['id']}")).json()["data"]


async def read_all_text(service: Service) -> str:
    """Every row of every table with data as text, and every stored answer in plain text."""
    tables = await service.run_sql(
        """
        select quote_ident(tablename) from pg_tables
         where schemaname = 'public' and tablename <> 'functions'
         order by tablename
        """
    )
    rows = [row for (table,) in tables for row in await service.run_sql(f"select t::text from {table} as t")]
    secret = service.database.resources.secret
    answers = await service.run_sql("select sealed from idempotency_answers where sealed <> ''")
    return "\n".join([*(text for (text,) in rows), *(secret.unseal(sealed) for (sealed,) in answers)])


def mentions(text: str, name: str) -> bool:
    """Whether a text has a name as a word. Inside random ids short names occur by chance."""
    return re.search(rf"\b{name}\b", text, re.IGNORECASE) is not None


async def export_person(service: Service) -> Export:
    return await service.database.read(lambda reader: operations.export(reader, ANN))
