"""Operations for agents."""

import secrets

from holdfast.inventory.agents import sql
from holdfast.inventory.agents.model import Registration
from holdfast.inventory.resources import Tx
from holdfast.kit.keys import digest
from holdfast.kit.problems import INVALID_API_KEY


async def register(tx: Tx, key: str) -> Registration:
    """The registration that belongs to an API key, made if there is none. Raises `invalid_api_key`."""
    id = f"reg_{secrets.token_urlsafe(16)}"
    if registration := await sql.register(tx, digest(key), id, digest(id)):
        return registration
    raise INVALID_API_KEY()
