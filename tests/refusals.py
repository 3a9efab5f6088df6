"""The last test of a whole run: what operations declare that they refuse is exactly what they were seen to refuse.

Every process counts the problems its operations answered with (`holdfast_refusals`). A run of some of the tests cannot
see all of them, and so tells nothing.
"""

from collections.abc import Collection, Iterable

import pytest
from _pytest.config import Config, ExitCode

from holdfast.kit.metrics import REFUSALS
from holdfast.kit.operation import Operations
from holdfast.kit.problems import INTERNAL_ERROR, SERVICE_UNAVAILABLE

Refusal = tuple[str, str]
"""The name of an operation, and a code."""

ANY_OPERATION = {INTERNAL_ERROR.code, SERVICE_UNAVAILABLE.code}
"""Codes that every operation may answer with, and none declares."""

_seen: set[Refusal] = set()
_differences: list[str] = []


def counted() -> set[Refusal]:
    """The refusals that operations of this process answered with."""
    samples = (sample for metric in REFUSALS.collect() for sample in metric.samples if sample.name.endswith("_total"))
    return {(each.labels["operation"], each.labels["code"]) for each in samples if each.value}


def declared() -> set[Refusal]:
    """The refusals that the operations of both services declare, also those that pages alone ask for."""
    return {(each.name, type.code) for each in operations() for type in each.run.refuses}


def operations() -> Operations:
    """Every operation that the services run."""
    from holdfast.events import api as events
    from holdfast.inventory import api as inventory

    # People sign in to both services in the same way.
    return tuple({each.name: each for each in (*inventory.ACROSS, *inventory.EVERY, *events.EVERY)}.values())


def differences(names: Collection[str], declared: set[Refusal], seen: set[Refusal]) -> Iterable[str]:
    """What differs, of the operations with these names: an operation may declare nothing, and refuse all the same."""
    for name, code in sorted(declared - seen):
        yield f"{name} declares {code}, which no test saw."
    for name, code in sorted(seen - declared):
        if name in names and code not in ANY_OPERATION:
            yield f"{name} answered {code}, which it does not declare."


def pytest_testnodedown(node: object) -> None:
    """A worker has ended; it handed over what it saw."""
    handed_over: dict[str, list[Refusal]] = getattr(node, "workeroutput", {})
    _seen.update((name, code) for name, code in handed_over.get("refusals", ()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int | ExitCode) -> None:
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["refusals"] = sorted(counted())  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        return
    _seen.update(counted())
    if exitstatus == ExitCode.OK and _is_whole(config):
        _differences.extend(differences({each.name for each in operations()}, declared(), _seen))
        if _differences:
            session.exitstatus = ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _differences:
        terminalreporter.section("refusals")
        for each in _differences:
            terminalreporter.line(each)


def _is_whole(config: Config) -> bool:
    """Whether the run is of all tests."""
    return config.args_source is Config.ArgsSource.TESTPATHS and not (config.option.keyword or config.option.markexpr)
