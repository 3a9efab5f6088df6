"""A payment processor for each test."""

from collections.abc import AsyncGenerator

import pytest

from tests.demo.stripe.processor import ProcessorScene, run_processor


@pytest.fixture
async def scene() -> AsyncGenerator[ProcessorScene]:
    async with run_processor() as scene:
        yield scene
        scene.processor.check()
