"""Files in any S3-compatible store. Calls boto3 in threads, because it blocks."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import boto3  # pyright: ignore[reportMissingTypeStubs]
import structlog
from botocore.config import Config  # pyright: ignore[reportMissingTypeStubs]
from botocore.exceptions import BotoCoreError, ClientError  # pyright: ignore[reportMissingTypeStubs]

from holdfast.events.storage.store import (
    CACHE_CONTROL,
    CHUNK_BYTES,
    MAX_CONCURRENT_FILES,
    OpenedFile,
    file_slots,
    file_turn,
)
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE

log = structlog.get_logger()


class S3Store:
    """The objects of one bucket. Only objects under `photos/` should be public.

    Without an endpoint it uses AWS; without keys it uses the role of the machine.
    """

    def __init__(self, bucket: str, endpoint_url: str, region: str, access_key_id: str, secret_access_key: str) -> None:
        self._bucket = bucket
        self._client: Any = boto3.client(  # pyright: ignore[reportUnknownMemberType]
            "s3",
            endpoint_url=endpoint_url or None,
            region_name=region,
            aws_access_key_id=access_key_id or None,
            aws_secret_access_key=secret_access_key or None,
            config=Config(
                signature_version="s3v4",
                s3={"addressing_style": "path" if endpoint_url else "auto"},
                # Stores other than AWS do not support its newer checksums.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                connect_timeout=3,
                read_timeout=10,
                retries={"mode": "standard", "total_max_attempts": 3},
                max_pool_connections=MAX_CONCURRENT_FILES,
            ),
        )
        self._threads = ThreadPoolExecutor(MAX_CONCURRENT_FILES, thread_name_prefix="s3")
        self._slots = file_slots()

    async def upload_url(self, name: str, content_type: str, content_length: int, seconds: int) -> str:
        parameters = {"Bucket": self._bucket, "Key": name, "ContentType": content_type, "ContentLength": content_length}
        return await self._run_in_thread(
            self._client.generate_presigned_url, "put_object", Params=parameters, ExpiresIn=seconds
        )

    @asynccontextmanager
    async def open(self, name: str) -> AsyncGenerator[OpenedFile | None]:
        response = await self._run_in_thread(self._get, name)
        if response is None:
            yield None
            return
        body = response["Body"]
        try:
            yield OpenedFile(response["ContentLength"], self._chunks(body))
        finally:
            body.close()

    def _get(self, name: str) -> Any:
        try:
            return self._client.get_object(Bucket=self._bucket, Key=name)
        except self._client.exceptions.NoSuchKey:
            return None

    async def _chunks(self, body: Any) -> AsyncIterator[bytes]:
        while chunk := await self._run_in_thread(body.read, CHUNK_BYTES):
            yield chunk

    async def write(self, name: str, content: bytes, content_type: str) -> None:
        parameters = {"Bucket": self._bucket, "Key": name, "ContentType": content_type, "CacheControl": CACHE_CONTROL}
        await self._run_in_thread(self._client.put_object, Body=content, **parameters)

    async def delete(self, names: Sequence[str]) -> None:
        for name in names:
            await self._run_in_thread(self._client.delete_object, Bucket=self._bucket, Key=name)

    async def _run_in_thread(self, work: Callable[..., Any], *args: Any, **options: Any) -> Any:
        try:
            async with file_turn(self._slots):
                return await asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *args, **options))
        except (BotoCoreError, ClientError) as error:
            log.error("the photo store is out of reach", error=str(error))
            raise SERVICE_UNAVAILABLE("The photo store cannot be reached right now.", retry_after=5) from error
