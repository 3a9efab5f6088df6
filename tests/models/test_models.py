"""A model is trusted because it can be read at once."""

from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["registrations", "ledger", "queues"])
def test_a_model_has_150_lines_at_most_not_counting_blank_ones(name: str) -> None:
    text = Path(__file__).with_name(f"{name}.py").read_text()

    assert sum(bool(line.strip()) for line in text.splitlines()) <= 150
