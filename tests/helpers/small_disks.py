"""Real file systems with little room, for what happens when a disk is full."""

import contextlib
import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest


class SmallDisk:
    """A file system in memory, at `directory`, of a size such as `60m`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def resize(self, size: str) -> None:
        assert not _mount("-o", f"remount,size={size}", self.directory).returncode


@contextlib.contextmanager
def small_disk(directory: Path, size: str) -> Generator[SmallDisk]:
    """A file system of this size. Skips the test if none can be mounted; in CI, root must be able to."""
    mounted = _mount("-t", "tmpfs", "-o", f"size={size},mode=755", "none", directory)
    if mounted.returncode:
        reason = f"no file system can be mounted: {mounted.stderr.strip()}"
        is_required = "CI" in os.environ and os.geteuid() == 0
        pytest.fail(reason) if is_required else pytest.skip(reason)
    try:
        yield SmallDisk(directory)
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


def _mount(*words: str | Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return subprocess.CompletedProcess(words, 1, "", "there is no program mount")
