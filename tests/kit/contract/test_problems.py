"""The text, code and hint of a refusal."""

from collections import Counter

from holdfast.events.problems import ALL
from holdfast.kit.contract.problems import (
    COMMON_PROBLEMS,
    NOT_FOUND,
    RATE_LIMITED,
    VALIDATION_FAILED,
    ProblemType,
    invalid,
)


def test_a_problem_has_the_text_and_hint_of_its_kind_by_default() -> None:
    assert NOT_FOUND().body() == {"error": NOT_FOUND.meaning, "code": "not_found", "hint": NOT_FOUND.hint}
    assert NOT_FOUND("No event has the id 7.", hint="Try 8.").body() == {
        "error": "No event has the id 7.",
        "code": "not_found",
        "hint": "Try 8.",
    }


def test_further_members_of_a_problem_are_in_its_body() -> None:
    problem = RATE_LIMITED(retry_after=7, limit="registrations")

    assert (problem.code, problem.status, problem.retry_after) == ("rate_limited", 429, 7)
    assert problem.body().items() >= {"retry_after": 7, "limit": "registrations"}.items()
    assert NOT_FOUND().retry_after is None


def test_a_validation_failure_names_every_field() -> None:
    problem = invalid({"title": ["is required"], "body": ["is required"]})

    assert str(problem) == "Not acceptable: body, title."
    assert problem.body()["errors"] == {"title": ["is required"], "body": ["is required"]}


def test_every_refusal_with_the_status_422_names_a_field() -> None:
    for kind in (*COMMON_PROBLEMS, *ALL):
        if kind.status == 422 and kind is not VALIDATION_FAILED:
            assert kind.field, kind.code
            assert kind("So it is.").body()["errors"] == {kind.field: ["So it is."]}
        else:
            assert kind.field is None
            assert "errors" not in kind().body()


def test_the_list_of_codes_is_closed_and_every_code_is_explained() -> None:
    everything: tuple[ProblemType, ...] = (*COMMON_PROBLEMS, *ALL)

    assert max(Counter(kind.code for kind in everything).values()) == 1
    for kind in everything:
        assert kind.code == kind.code.lower().replace(" ", "_")
        assert 400 <= kind.status < 600
        assert kind.meaning.endswith(".")
        assert kind.hint.endswith(".")
