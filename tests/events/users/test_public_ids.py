"""Public ids are random. One that another account has already is not given to a new one."""

import base64
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from holdfast.events.users import model
from tests.helpers.events_service import Service
from tests.helpers.form_browser import Browser
from tests.helpers.people import ANN, erase


async def sign_in(service: Service) -> None:
    await Browser(service).sign_in("bob@example.com")


async def register_an_organizer(service: Service) -> None:
    await service.organizer(email="bob@example.com")


async def erase_a_person(service: Service) -> None:
    await erase(service, ANN)


@pytest.mark.parametrize("free", [0, 1], ids=["no candidate is free", "one candidate is free"])
@pytest.mark.parametrize("act", [sign_in, register_an_organizer, erase_a_person])
async def test_an_account_gets_another_public_id_if_the_random_one_is_taken(
    service: Service, monkeypatch: pytest.MonkeyPatch, act: Callable[[Service], Coroutine[Any, Any, None]], free: int
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    [(public_id,)] = await service.run_sql("select public_id from users where id = %(id)s", id=ada.id)
    draws: list[int] = []

    def urandom(size: int) -> bytes:
        """The bytes of ids that are all taken the first time, except for some that are free."""
        draws.append(size)
        if len(draws) > 1:
            return os.urandom(size)
        return base64.b32decode(public_id.upper()) * (size // 5 - free) + os.urandom(5 * free)

    monkeypatch.setattr(model, "urandom", urandom)
    await act(service)

    assert draws == [15] * (2 - free)
    assert await service.run_sql("select count(*) from users where public_id = %(id)s", id=public_id) == [(1,)]
