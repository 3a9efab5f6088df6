"""The last test of a run: what operations declare that they refuse is exactly what they were seen to refuse.

Every process counts the problems its operations answered with (`holdfast_refusals`). A run of some of the tests cannot
see all of them, and so tells only what is not declared. All of them are seen without the long tests.
"""

from collections.abc import Collection, Iterable

import pytest
from _pytest.config import Config, ExitCode

from holdfast.kit.contract.client import CLIENT_GONE
from holdfast.kit.contract.problems import INTERNAL_ERROR, SERVICE_UNAVAILABLE
from holdfast.kit.environment.metrics import REFUSALS
from holdfast.kit.operations.operation import Operations

Refusal = tuple[str, str]
"""The name of an operation, and a code."""

ANY_OPERATION = {INTERNAL_ERROR.code, SERVICE_UNAVAILABLE.code, CLIENT_GONE.code}
"""Codes that every operation may answer with, and none declares."""

_seen: set[Refusal] = set()
_differences: list[str] = []


def counted_refusals() -> set[Refusal]:
    """The refusals that operations of this process answered with."""
    samples = (sample for metric in REFUSALS.collect() for sample in metric.samples if sample.name.endswith("_total"))
    return {(sample.labels["operation"], sample.labels["code"]) for sample in samples if sample.value}


def declared_refusals() -> set[Refusal]:
    """The refusals that the operations of both services declare, also those that pages alone ask for."""
    return {(operation.name, type.code) for operation in operations() for type in operation.mode.refuses}


def operations() -> Operations:
    """Every operation that the services run, also if both have one with the same name."""
    from holdfast.events import service as events
    from holdfast.inventory import service as inventory

    return (*inventory.TENANTLESS_OPERATIONS, *inventory.ALL_OPERATIONS, *events.ALL_OPERATIONS)


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
        config.workeroutput["refusals"] = sorted(counted_refusals())  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        return
    _seen.update(counted_refusals())
    if exitstatus == ExitCode.OK and not config.option.collectonly:
        seen = _seen if _is_whole(config) else _seen | declared_refusals()
        _differences.extend(differences({operation.name for operation in operations()}, declared_refusals(), seen))
        if _differences:
            session.exitstatus = ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _differences:
        terminalreporter.section("The run fails: declared refusals are not those that tests saw", red=True)
        for difference in _differences:
            terminalreporter.line(difference)


def _is_whole(config: Config) -> bool:
    """Whether the run is of all tests, with or without the long ones."""
    everything = config.args_source is Config.ArgsSource.TESTPATHS and not config.option.keyword
    return everything and config.option.markexpr in {"", "not long"}
