"""The photos of a backup: read from any store, and written to any."""

from holdfast.commands.backups.photos import MAX_CONCURRENT_PHOTOS, is_photo, read_photos, write_photos
from holdfast.events.settings import Settings


async def test_photos_are_read_from_and_written_to_a_store_in_order_and_a_missing_one_is_reported(
    disk_or_s3: Settings,
) -> None:
    photos = [(f"photos/7/{number:022}.jpg", str(number).encode()) for number in range(3 * MAX_CONCURRENT_PHOTOS)]
    missing = f"photos/7/{'m' * 22}.png.w480.webp"

    await write_photos(disk_or_s3, photos)

    names = [missing, *(name for name, _ in photos)]
    assert [photo async for photo in read_photos(disk_or_s3, names)] == [(missing, None), *photos]


def test_only_names_of_photos_and_their_sizes_go_to_the_store() -> None:
    key = f"photos/admin/{'k' * 22}.jpg"

    assert is_photo(key)
    assert is_photo(f"{key}.w1920.webp")
    assert not any(map(is_photo, ("photos/../events.secret", f"/{key}", f"photos/../{key}", "secrets/events.secret")))
