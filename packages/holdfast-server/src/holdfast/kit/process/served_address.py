"""The addresses at which a service is served: commands find one even if the settings do not name it.

Several processes may serve from one data directory. Each has a line in a file of it, the newest last.
"""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import NamedTuple

import psutil

from holdfast.kit.environment.settings import Settings, base_address


class _ServedAddress(NamedTuple):
    """An address, with the process that served it. A process id alone may belong to another process later.

    began_at    when the process began, in seconds since 1970; 0: the line is of an older version, without a process
    """

    address: str
    process_id: int = 0
    began_at: float = 0

    @property
    def is_served(self) -> bool:
        try:
            return bool(self.began_at) and psutil.Process(self.process_id).create_time() == self.began_at
        except psutil.Error:
            return False


def store_served_address(settings: Settings) -> None:
    """Store the address of this process, which is about to serve, in the data directory if there is one."""
    # A process with a database of its own may have no directory, or one that it must not write to.
    with contextlib.suppress(OSError):
        if settings.data_dir.is_dir():
            process = _ServedAddress(settings.base_url, os.getpid(), psutil.Process().create_time())
            with _file(settings).open("a+", encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                file.seek(0)
                others = [
                    line for line in _lines(file.read()) if line.is_served and line.process_id != process.process_id
                ]
                file.truncate(0)
                file.writelines(f"{line.address} {line.process_id} {line.began_at!r}\n" for line in (*others, process))


def served_address(settings: Settings, usual_port: int) -> str:
    """The base address in the settings, or else one that is served from the data directory, or was served last.

    If nothing was served yet, it is the address that `serve` takes: the usual port of this machine.
    """
    if settings.base_url:
        return settings.base_url
    with contextlib.suppress(OSError, ValueError):
        lines = _lines(_file(settings).read_text(encoding="utf-8"))
        served = [line for line in lines if line.is_served] or lines
        if served and (address := base_address(served[-1].address)):
            return address
    return f"http://127.0.0.1:{usual_port}"


def _lines(text: str) -> list[_ServedAddress]:
    """The lines of the file, also of one that an older version wrote: an address alone."""
    lines: list[_ServedAddress] = []
    for line in text.splitlines():
        match line.split():
            case [address, process_id, began_at]:
                with contextlib.suppress(ValueError):
                    lines.append(_ServedAddress(address, int(process_id), float(began_at)))
            case [address]:
                lines.append(_ServedAddress(address))
            case _:
                pass
    return lines


def _file(settings: Settings) -> Path:
    return settings.data_dir / f"{settings.service}.address"
