"""A gate that decoders wait at, so that a test can look at what happens meanwhile."""

import os
import sys
from pathlib import Path


class Gate:
    """What the processes of a module wait at before they begin."""

    def __init__(self, path: Path, module: str) -> None:
        self.path = path
        os.mkfifo(path)
        self._held = os.open(path, os.O_RDWR)
        self.program = program(
            f"open({str(path)!r}).read(); import runpy; runpy.run_module({module!r}, run_name='__main__')"
        )

    def open(self) -> None:
        """Let everyone through who waits, and who comes later."""
        passage = self.path.with_suffix(".open")
        passage.touch()
        passage.replace(self.path)
        os.close(self._held)


def program(lines: str) -> tuple[str, ...]:
    """A decoder that does something else."""
    return (sys.executable, "-c", lines)
