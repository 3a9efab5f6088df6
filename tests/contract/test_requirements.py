"""The table of promises and the tests agree, both ways."""

from tests.contract.requirements import coverage, promises, promises_by_test

HERE = "test_requirements.py"


def test_every_promise_has_a_test() -> None:
    assert [id for id, tests in coverage().items() if not tests] == []


def test_every_test_names_a_promise() -> None:
    assert [test for test, ids in promises_by_test().items() if not ids and not test.startswith(HERE)] == []


def test_every_promise_that_a_test_names_is_in_the_table() -> None:
    assert {test: ids - promises().keys() for test, ids in promises_by_test().items() if ids - promises().keys()} == {}
