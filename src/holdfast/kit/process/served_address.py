"""The address at which a service is served: commands find it even if the settings do not name it."""

import contextlib
from pathlib import Path

from holdfast.kit.environment.settings import Settings, base_address


def store(settings: Settings) -> None:
    """Store the address of a process that is about to serve, in the data directory if there is one."""
    # A process with a database of its own may have no directory, or one that it must not write to.
    with contextlib.suppress(OSError):
        if settings.data_dir.is_dir():
            _file(settings).write_text(f"{settings.base_url}\n", encoding="utf-8")


def served_address(settings: Settings, usual_port: int) -> str:
    """The base address in the settings, or else the one that was served last from the data directory.

    If nothing was served yet, it is the address that `serve` takes: the usual port of this machine.
    """
    if settings.base_url:
        return settings.base_url
    with contextlib.suppress(OSError, ValueError):
        if address := base_address(_file(settings).read_text(encoding="utf-8").strip()):
            return address
    return f"http://127.0.0.1:{usual_port}"


def _file(settings: Settings) -> Path:
    return settings.data_dir / f"{settings.service}.address"
