"""The table of promises and the tests agree, both ways."""

from tests.contract.requirements import declared, promised

HERE = "test_requirements.py"


def test_every_promise_has_a_test() -> None:
    assert [id for id, tests in promised().items() if not tests] == []


def test_every_test_names_a_promise() -> None:
    assert [test for test, ids in declared().items() if not ids and not test.startswith(HERE)] == []


def test_the_table_names_exactly_the_tests_that_declare_each_promise() -> None:
    tests = declared()
    assert promised() == {id: {test for test, ids in tests.items() if id in ids} for id in promised()}
