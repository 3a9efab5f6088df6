"""Programs of the system that some tests need: they skip without one, and fail in CI, which installs all of them."""

import os
import shutil

import pytest


def program(name: str) -> str:
    """The path of a program. Skips the test if the system has none, or fails it in CI."""
    path = shutil.which(name)
    if path is None:
        reason = f"{name} is not installed"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return path
