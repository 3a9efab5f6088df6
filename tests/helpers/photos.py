"""What organizers do with photos, and what is left of it."""

from pathlib import Path
from typing import Any

import httpx2

from holdfast.events.photos.model import size_names
from holdfast.events.storage.store import Store
from tests.helpers.events_service import Client, Service
from tests.helpers.pictures import picture
from tests.helpers.serving import PLAIN

JPEG = "image/jpeg"


async def presign(client: Client, content: bytes, content_type: str = JPEG) -> dict[str, Any]:
    """What is answered to the wish to upload this."""
    body = {"content_type": content_type, "content_length": len(content)}
    response = await client.post("/api/uploads/presign", body)
    assert response.status_code == 201, response.text
    return response.json()["data"]


async def put_upload(
    service: Service, url: str, content: bytes, content_type: str = JPEG, **headers: str
) -> httpx2.Response:
    """PUT something to the address of an upload, wherever that is."""
    headers = {"Content-Type": content_type, **headers}
    if url.startswith(service.database.resources.settings.base_url):
        return await service.http.put(url, content=content, headers=headers)
    async with httpx2.AsyncClient(verify=PLAIN) as http:
        return await http.put(url, content=content, headers=headers)


async def upload(service: Service, client: Client, content: bytes | None = None, content_type: str = JPEG) -> str:
    """Upload a picture; its key."""
    content = picture(content_type) if content is None else content
    presigned = await presign(client, content, content_type)
    response = await put_upload(service, presigned["upload_url"], content, content_type)
    assert response.status_code == 200, response.text
    return presigned["key"]


def key_of(organizer_id: int, letter: str) -> str:
    """A key that one knows before there is a photo."""
    return f"photos/{organizer_id}/{letter * 22}.jpg"


async def write_photos(service: Service, *keys: str) -> None:
    """Write the files of photos with these keys."""
    for key in keys:
        await service.database.resources.photos.write(key, picture(), JPEG)


async def accept_photos(service: Service, *keys: str) -> None:
    """See that there are photos with these keys, which no event shows yet."""
    await write_photos(service, *keys)
    await service.run_sql(
        """
        insert into photos (key, organizer_id, state, content_type, content_length)
        select key, split_part(key, '/', 2)::bigint, 'accepted', %(content_type)s, %(length)s
          from unnest(%(keys)s::text[]) as key
        """,
        keys=list(keys),
        content_type=JPEG,
        length=len(picture()),
    )


async def read_photo(service: Service, url: str) -> bytes:
    """What the public sees at the address of a photo."""
    response = await service.http.get(url)
    assert response.status_code == 200, response.text
    return response.content


async def stored_file(store: Store, name: str) -> bytes | None:
    """A file in a store; None when it is not there."""
    async with store.open(name) as opened:
        return await opened.read() if opened else None


async def stored_sizes(service: Service, key: str) -> list[str]:
    """The names of the sizes of a photo that are stored."""
    store = service.database.resources.photos
    return [name for name in size_names(key) if await stored_file(store, name) is not None]


async def with_photo(
    client: Client, service: Service, width: int = 1000, height: int = 10
) -> tuple[dict[str, Any], str]:
    """An event that shows a photo of this shape, and the key of the photo."""
    key = await upload(service, client, picture(JPEG, width, height))
    return await client.create_event(image_keys=[key]), key


def failing_fields(response: httpx2.Response) -> dict[str, list[str]]:
    """The fields a refusal names, with their messages."""
    assert response.status_code == 422, response.text
    assert response.json()["code"] == "validation_failed"
    return response.json()["errors"]


def stored_files(service: Service, kind: str = "photos") -> set[str]:
    """The names of all files on the disk, of photos or of uploads."""
    root: Path = service.database.resources.settings.data_dir / "media"
    return {str(path.relative_to(root)) for path in (root / kind).rglob("*") if path.is_file()}


async def photo_states(service: Service) -> dict[str, str]:
    """The state of every photo, by key."""
    return dict(await service.run_sql("select key, state::text from photos"))  # type: ignore[arg-type]


async def a_day_passes(service: Service) -> None:
    """Make everything a day older that is deleted once it is old enough."""
    await service.run_sql(
        """
        update photos
           set idle_since = idle_since - interval '25 hours', upload_ends = upload_ends - interval '25 hours',
               scaling_due = scaling_due - interval '25 hours'
        """
    )


async def add_photos(client: Client, event: dict[str, Any], **source: Any) -> httpx2.Response:
    return await client.post(f"/api/events/{event['id']}/photos", source)


async def nothing_is_left(service: Service, client: Client, event: dict[str, Any]) -> None:
    """Assert that an event shows no photo, and that none is kept."""
    assert (await client.get(f"/api/events/{event['id']}")).json()["data"]["image_urls"] == []
    assert await photo_states(service) == {}
    assert stored_files(service) == set()


async def image_keys(service: Service, event: dict[str, Any]) -> list[str]:
    [(keys,)] = await service.run_sql("select image_keys from events where id = %(id)s", id=event["id"])
    return keys
