"""What operators are given in `deploy` fits the services."""

import json
import re
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from holdfast.events.product import EVENTS
from holdfast.inventory.product import INVENTORY
from tests.forking import forks

DEPLOY = Path(__file__).parents[2] / "deploy"
ENDS = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}


@pytest.fixture(scope="module")
def figures() -> set[str]:
    """The names of all figures of the services, which exist once these are built."""
    EVENTS.build(EVENTS.database(EVENTS.configured()))
    INVENTORY.build(INVENTORY.database(INVENTORY.configured()))
    return {each.name + end for each in REGISTRY.collect() for end in ENDS.get(each.type, [])}


@pytest.mark.parametrize("path", ["prometheus/alerts.yml", "grafana/holdfast.json"])
def test_every_figure_that_is_watched_is_one_that_the_services_have(path: str, figures: set[str]) -> None:
    named = {*re.findall(r"\bholdfast_\w+", (DEPLOY / path).read_text(encoding="utf-8"))}

    assert len(named) > 5
    assert named - figures == set()


def test_every_panel_of_the_dashboard_has_a_place_of_its_own() -> None:
    panels = json.loads((DEPLOY / "grafana/holdfast.json").read_text(encoding="utf-8"))["panels"]

    places = {(each["gridPos"]["x"], each["gridPos"]["y"]) for each in panels}
    assert len(places) == len({each["id"] for each in panels}) == len(panels)
    assert all(target["expr"] for each in panels for target in each["targets"])


@pytest.mark.parametrize("service", ["events", "inventory"])
def test_a_unit_runs_commands_that_there_are(service: str, tmp_path: Path) -> None:
    unit = (DEPLOY / f"systemd/holdfast-{service}.service").read_text(encoding="utf-8")

    commands = re.findall(r"^Exec\w+=/opt/holdfast/bin/holdfast (.+)$", unit, re.MULTILINE)
    assert len(commands) == 2
    for each in commands:
        words = each.split()
        help = forks().run(["holdfast", *words[:2], "--help"], tmp_path, {}).stdout
        assert [option for option in words if option.startswith("--") and option not in help] == []


def test_commands_that_alerts_name_are_there(tmp_path: Path) -> None:
    alerts = (DEPLOY / "prometheus/alerts.yml").read_text(encoding="utf-8")

    commands = re.findall(r"`(holdfast [a-z ]+)`", alerts)
    assert len(commands) > 3
    assert [each for each in commands if forks().run([*each.split(), "--help"], tmp_path, {}).returncode] == []
