"""The files in `deploy` for operators fit the services."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import httpx2
import pytest
from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from tests.helpers.command_line import run_up
from tests.helpers.data_directories import scratch_directory, wait_until
from tests.helpers.forking import forks
from tests.helpers.installed_programs import program

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus/alerts.yml"
DASHBOARD = DEPLOY / "grafana/holdfast.json"
ENDS = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}

OF_TARGETS = {"job", "instance"}
"""The labels that Prometheus adds to every figure."""


def address_in(output: str, service: str) -> str:
    match = re.search(rf"^{service}  (http://\S+)$", output, re.MULTILINE)
    assert match, output
    return match[1]


@pytest.fixture(scope="module")
def figures() -> set[str]:
    """The names of all figures of the services, which exist once these are built."""
    EVENTS.build(EVENTS.database(EVENTS.configured()))
    INVENTORY.build(INVENTORY.database(INVENTORY.configured()))
    return {collector.name + end for collector in REGISTRY.collect() for end in ENDS.get(collector.type, [])}


@pytest.fixture(scope="module")
def labels(figures: set[str]) -> dict[str, set[str]]:
    """The labels of each figure. Those of a figure that was never told are known to nobody but its object."""
    objects = {
        value
        for name, module in [*sys.modules.items()]
        if name.startswith("holdfast.")
        for value in vars(module).values()
        if isinstance(value, MetricWrapperBase)
    }
    named = {
        figure.name + end: {*cast(Sequence[str], vars(collector)["_labelnames"]), *(["le"] if end == "_bucket" else [])}
        for collector in objects
        for figure in collector.describe()
        for end in ENDS[figure.type]
    }
    return {name: named[name] for name in figures if name.startswith("holdfast_")}


def alerts() -> Iterator[tuple[str, str]]:
    """The expression of each alert, and all of its text."""
    for rule in ALERTS.read_text(encoding="utf-8").split("- alert: ")[1:]:
        [(folded, plain)] = re.findall(r"^ +expr: (?:>-\n((?: {10,}.*\n)+)|(.+)$)", rule, re.MULTILINE)
        yield " ".join((folded or plain).split()), rule


def expressions() -> list[str]:
    """Every expression over figures, of alerts and of the dashboard."""
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return [
        *(expression for expression, _ in alerts()),
        *(target["expr"] for panel in panels for target in panel["targets"]),
    ]


@pytest.mark.parametrize("path", ["prometheus/alerts.yml", "grafana/holdfast.json"])
def test_every_figure_that_is_watched_is_one_that_the_services_have(path: str, figures: set[str]) -> None:
    named = {*re.findall(r"\bholdfast_\w+", (DEPLOY / path).read_text(encoding="utf-8"))}

    assert len(named) > 5
    assert named - figures == set()


@pytest.mark.parametrize("expression", expressions())
def test_every_label_that_is_watched_is_one_that_the_figure_has(expression: str, labels: dict[str, set[str]]) -> None:
    figures = re.findall(r"\b(holdfast_\w+)(?:\{([^}]*)\})?", expression)
    has = OF_TARGETS.union(*(labels[name] for name, _ in figures))

    for name, chosen in figures:
        assert {*re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", chosen)} <= labels[name] | OF_TARGETS
    grouped = {label for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in re.findall(r"\w+", group)}
    assert grouped <= has


def test_every_alert_names_labels_that_it_has_when_it_is_raised(labels: dict[str, set[str]]) -> None:
    for expression, rule in alerts():
        grouped = re.findall(r"\b(?:sum|max) by \(([^)]*)\)", expression)
        labels_of_figures = OF_TARGETS.union(*(labels[name] for name in re.findall(r"\bholdfast_\w+", expression)))
        left = {*re.findall(r"\w+", grouped[0])} if grouped else labels_of_figures
        assert {*re.findall(r"\$labels\.(\w+)", rule)} <= left, rule


def test_a_counter_with_an_alert_is_exported_at_zero() -> None:
    counted = [
        (name, dict(re.findall(r'(\w+)="([^"]*)"', chosen)))
        for expression, _ in alerts()
        for name, chosen in re.findall(r"increase\((\w+)(?:\{([^}]*)\})?", expression)
    ]
    assert len(counted) > 2

    with run_up(scratch_directory(), "--inventory-port=0", "--events-port=0") as output:

        def is_zero(name: str, chosen: dict[str, str]) -> bool:
            return any(
                sample.name == name and chosen.items() <= sample.labels.items() and sample.value == 0
                for service in ("Inventory", "Events")
                for family in text_string_to_metric_families(httpx2.get(f"{address_in(output, service)}/metrics").text)
                for sample in family.samples
            )

        for name, chosen in counted:
            wait_until(lambda name=name, chosen=chosen: is_zero(name, chosen))


def test_alerts_fire_when_they_should_and_not_before() -> None:
    promtool = program("promtool")
    cases = ALERTS.with_name("alerts_test.yml")
    named = {*re.findall(r"alertname: (\w+)$", cases.read_text(encoding="utf-8"), re.MULTILINE)}

    for arguments in (["check", "rules", ALERTS], ["test", "rules", cases]):
        ran = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr + ran.stdout

    assert named == {rule.split()[0] for _, rule in alerts()}


def test_no_alert_is_raised_by_what_was_over_before() -> None:
    """An alert looks at a shorter time than it waits for, or at a shorter one too."""
    waiting = {
        rule.split()[0]: (re.findall(r"\[(\d+)m\]", expression), minutes)
        for expression, rule in alerts()
        for minutes in re.findall(r"^ +for: (\d+)m$", rule, re.MULTILINE)
    }

    windows = {
        name: (min(map(int, looked_at)), int(minutes)) for name, (looked_at, minutes) in waiting.items() if looked_at
    }
    assert len(windows) > 3
    assert {name for name, (window, minutes) in windows.items() if window >= minutes} == set()


def test_every_panel_of_the_dashboard_has_a_place_of_its_own() -> None:
    panels = json.loads((DEPLOY / "grafana/holdfast.json").read_text(encoding="utf-8"))["panels"]

    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len({panel["id"] for panel in panels}) == len(panels)
    assert all(target["expr"] for panel in panels for target in panel["targets"])


@pytest.mark.parametrize("service", ["events", "inventory"])
def test_a_unit_runs_commands_that_there_are(service: str, tmp_path: Path) -> None:
    unit = (DEPLOY / f"systemd/holdfast-{service}.service").read_text(encoding="utf-8")

    commands = re.findall(r"^Exec\w+=/opt/holdfast/bin/holdfast (.+)$", unit, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        words = command.split()
        help = forks().run(["holdfast", *words[:2], "--help"], tmp_path, {}).stdout
        assert [option for option in words if option.startswith("--") and option not in help] == []


def test_commands_that_alerts_name_are_there(tmp_path: Path) -> None:
    commands = re.findall(r"`(holdfast [a-z ]+)`", ALERTS.read_text(encoding="utf-8"))
    assert len(commands) > 3
    assert [command for command in commands if forks().run([*command.split(), "--help"], tmp_path, {}).returncode] == []


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("README.md", ["Ctrl-C", "`.venv/bin/holdfast status`", "`.venv/bin/holdfast check`"]),
        ("docs/deploy.md", ["as root", "`holdfast status`", "`holdfast check`", "HAProxy", "alerts for Prometheus"]),
    ],
)
def test_the_first_pages_name_what_an_operator_looks_for_first(page: str, words: list[str]) -> None:
    text = " ".join((DEPLOY.parent / page).read_text(encoding="utf-8").split())

    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize("path", ["haproxy/haproxy.cfg", "nginx/holdfast.conf", "caddy/Caddyfile"])
def test_a_proxy_sends_requests_to_the_ports_of_the_units(path: str) -> None:
    proxy = (DEPLOY / path).read_text(encoding="utf-8")
    for service in ("events", "inventory"):
        unit = (DEPLOY / f"systemd/holdfast-{service}.service").read_text(encoding="utf-8")
        [port] = re.findall(r"--port (\d+)", unit)
        assert sorted(re.findall(rf"(10\.0\.0\.\d+):{port}\b", proxy)) == ["10.0.0.11", "10.0.0.12"]
