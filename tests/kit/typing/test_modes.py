"""The type checker refuses a function in the wrong mode, and lets every right one pass."""

import json
import subprocess
import sys
from pathlib import Path

WRONG = Path(__file__).with_name("wrong_lines.py")


def test_pyright_refuses_every_line_with_a_wrong_mode_and_no_other() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", WRONG.parent],
        capture_output=True,
        text=True,
        check=False,
    )

    report = json.loads(checked.stdout)
    lines_with_errors = {
        diagnostic["range"]["start"]["line"] + 1
        for diagnostic in report["generalDiagnostics"]
        if diagnostic["severity"] == "error"
    }
    lines = WRONG.read_text(encoding="utf-8").splitlines()
    assert report["summary"]["filesAnalyzed"] == 1
    assert lines_with_errors == {number for number, line in enumerate(lines, start=1) if line.endswith("# refused")}
