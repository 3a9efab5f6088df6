"""Ten thousand tries at one password, from hundreds of addresses: all with `HOLDFAST_SOAK`, else two thousand."""

import asyncio
import os
from collections import Counter
from typing import LiteralString

from holdfast.events.settings import Settings
from tests.helpers.events_service import Service, running_events
from tests.helpers.form_browser import Browser, token

ADA = "ada@example.com"
PASSWORD = "correct horse battery"
TRIES = 10_000 if "HOLDFAST_SOAK" in os.environ else 2_000
OF_A_CLIENT = 20
BATCH_SIZE = 50

ROWS: LiteralString = """
    select (select count(*) from sessions), (select count(*) from sign_in_links), (select count(*) from mails),
           (select count(*) from users)
"""


async def attack(service: Service, tries: int) -> Counter[int]:
    """Try the right password, from many addresses at once. Returns how often there was which answer."""
    form_token = token(await Browser(service).get("/sign-in"))
    answers: Counter[int] = Counter()

    async def client(number: int) -> None:
        thief = Browser(service, address=f"192.0.{number // 250}.{number % 250}")
        for _ in range(OF_A_CLIENT):
            form = {"token": form_token, "email": ADA, "password": PASSWORD}
            answers[(await thief.http.post("/sign-in", data=form)).status_code] += 1

    clients = range(tries // OF_A_CLIENT)
    for first in clients[::BATCH_SIZE]:
        await asyncio.gather(*(client(number) for number in clients[first : first + BATCH_SIZE]))
    return answers


async def test_very_many_password_tries_are_all_refused_after_the_limit_and_the_owner_signs_in(
    settings: Settings,
) -> None:
    settings = settings.model_copy(update={"sign_ins_per_address": 10, "sign_ins_per_hour": 100})
    async with running_events(settings) as service:
        await service.organizer(email=ADA, password=PASSWORD)
        at_home = Browser(service)
        await at_home.send("/sign-in", email=ADA, password=PASSWORD)
        guesses = [
            await Browser(service, address=f"198.51.100.{number}").send("/sign-in", email=ADA, password="a wrong one")
            for number in range(9)
        ]
        before = await service.run_sql(ROWS)

        answers = await attack(service, TRIES)

        assert [guess.status_code for guess in guesses] == [422] * 9
        assert answers == {429: TRIES}
        assert await service.run_sql(ROWS) == before
        assert await at_home.is_signed_in()
        known = Browser(service)
        known.http.cookies.set("known", at_home.http.cookies["known"])
        assert (await known.send("/sign-in", email=ADA, password=PASSWORD)).status_code == 303
        assert (await Browser(service).sign_in(ADA)).headers["location"] == "/console"
