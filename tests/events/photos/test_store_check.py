"""`holdfast check` writes to the bucket of photos, reads from it, and leaves nothing there."""

from holdfast.events.checks import check_photo_store
from holdfast.events.service import EVENTS
from holdfast.events.settings import Settings
from holdfast.kit.process.checks.check_list import run_checks
from holdfast.kit.process.checks.inspection import Inspection
from tests.events.photos.conftest import S3


async def test_a_check_of_the_bucket_writes_reads_and_leaves_nothing(in_s3: Settings, s3: S3) -> None:
    settings = in_s3.model_copy(update={"secret_key": "a secret of the tests, long enough"})
    wrong_key = settings.model_copy(update={"s3_secret_access_key": "not it"})

    [finding] = await run_checks(Inspection(EVENTS, settings), [check_photo_store])
    [refusal] = await run_checks(Inspection(EVENTS, wrong_key), [check_photo_store])

    assert (finding.status, finding.message) == (
        "ok",
        f"Files can be written to and read from the bucket {settings.s3_bucket} at {s3.url}.",
    )
    assert [path for path in (s3.directory / settings.s3_bucket).rglob("*") if path.is_file()] == []
    assert refusal.status == "wrong"
    assert "AccessDenied" in refusal.message or "SignatureDoesNotMatch" in refusal.message
    assert refusal.remedy.startswith("Correct S3_BUCKET, S3_ENDPOINT_URL, S3_REGION, S3_ACCESS_KEY_ID")
