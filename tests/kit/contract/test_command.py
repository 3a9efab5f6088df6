"""Commands are typed, bounded and checked as a whole."""

import datetime as dt
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType, field

from holdfast.kit.contract.command import (
    Command,
    Id,
    Timestamp,
    body_type,
    broken_rules,
    check,
    normalized,
    rule,
    sent_fields,
    utc,
    with_integers,
)
from holdfast.kit.contract.problems import Problem


class Book(Command):
    """A command with a field of every kind."""

    room: Id
    title: Annotated[str, Meta(min_length=1, max_length=20)]
    starts: Timestamp
    ends: Timestamp | None = None
    seats: Annotated[int, Meta(ge=0)] = 1
    mode: Literal["open", "closed"] = "open"
    tags: list[str] = field(default_factory=list[str])
    note: str | UnsetType = UNSET

    @rule("ends", "starts")
    def _ends_after_it_starts(self) -> str | None:
        return "must be later than starts" if self.ends is not None and self.ends <= self.starts else None

    @rule("seats", "mode")
    def _closed_has_no_seats(self) -> str | None:
        return "must be 0 when closed" if self.mode == "closed" and self.seats else None


VALID: dict[str, Any] = {"room": 7, "title": "Life drawing", "starts": "2030-01-01T10:00:00Z"}


def errors_of(kind: type[Command], raw: dict[str, Any]) -> dict[str, list[str]]:
    with pytest.raises(Problem) as refusal:
        check(kind, raw)
    assert (refusal.value.code, refusal.value.status) == ("validation_failed", 422)
    return refusal.value.extra["errors"]


def starts(text: str) -> dt.datetime:
    return check(Book, {**VALID, "starts": text}).starts


def test_a_valid_body_becomes_a_command_with_defaults_filled_in() -> None:
    assert check(Book, VALID) == Book(
        room=7, title="Life drawing", starts=dt.datetime(2030, 1, 1, 10, tzinfo=dt.UTC), seats=1, mode="open", tags=[]
    )


def test_every_failing_field_is_named_at_once() -> None:
    errors = errors_of(Book, {"title": "", "starts": "soon", "seats": "3", "mode": "ajar", "tags": [1], "colour": 1})

    assert errors.keys() == {"room", "title", "starts", "seats", "mode", "tags", "colour"}
    assert errors["room"] == ["is required"]
    assert errors["colour"] == ["unknown field"]
    assert errors["seats"] == ['must be an integer, not "3"']


def test_rules_are_checked_together_with_the_fields() -> None:
    errors = errors_of(Book, {**VALID, "ends": "2029-01-01T10:00:00Z", "mode": "closed", "title": ""})

    assert errors.keys() == {"ends", "seats", "title"}
    assert errors["ends"] == ["must be later than starts"]
    assert errors["seats"] == ["must be 0 when closed"]


def test_rules_skip_fields_which_failed_already() -> None:
    errors = errors_of(Book, {**VALID, "starts": "soon", "ends": "2029-01-01T10:00:00Z", "mode": "closed"})

    assert errors.keys() == {"starts", "seats"}


def test_rules_of_a_parent_are_kept_beside_those_of_its_child() -> None:
    class Extended(Book):
        @rule("title")
        def _no_shouting(self) -> str | None:
            return "must not shout" if self.title.isupper() else None

    errors = errors_of(Extended, {**VALID, "title": "HELLO", "mode": "closed"})

    assert errors == {"title": ["must not shout"], "seats": ["must be 0 when closed"]}
    assert check(Book, {**VALID, "title": "HELLO"}).title == "HELLO"


def test_rules_that_read_a_failed_field_are_skipped() -> None:
    book = Book(room=1, title="x", starts=dt.datetime(2030, 1, 1, tzinfo=dt.UTC), seats=2, mode="closed")

    assert broken_rules(book) == {"seats": ["must be 0 when closed"]}
    assert broken_rules(book, {"mode": ["is required"]}) == {}


def test_a_text_of_digits_is_refused_as_a_number() -> None:
    assert errors_of(Book, {**VALID, "room": "7", "seats": "3"}).keys() == {"room", "seats"}


def test_integers_in_a_path_or_a_query_are_read_as_integers() -> None:
    texts = {"room": "7", "seats": "-12", "title": "7", "note": "8", "no_such_field": "9"}

    assert with_integers(Book, texts) == {**texts, "room": 7, "seats": -12}


@pytest.mark.parametrize(
    "text", ["", "-", "+7", "07", "7.0", "7e0", " 7", "7 ", "7\n", "0x7", "1_0", "\u0667", "9" * 5000]
)
def test_a_number_in_another_spelling_stays_a_text_and_is_refused(text: str) -> None:
    assert with_integers(Book, {"room": text}) == {"room": text}
    assert errors_of(Book, {**VALID, **with_integers(Book, {"room": text})}).keys() == {"room"}


def test_a_number_beyond_64_bits_is_refused() -> None:
    assert errors_of(Book, {**VALID, "room": 2**63}).keys() == {"room"}
    assert errors_of(Book, {**VALID, "room": 10**5000}).keys() == {"room"}


def test_a_time_without_seconds_is_at_second_zero() -> None:
    assert starts("2030-06-01T10:00") == dt.datetime(2030, 6, 1, 10, tzinfo=dt.UTC)
    assert starts("2030-06-01T10:00+02:00") == dt.datetime(2030, 6, 1, 8, tzinfo=dt.UTC)


@pytest.mark.parametrize("value", ["a\x00b", ["fine", "\x00"], [["\x00"]], {"key": ["\x00"]}, {"\x00": "value"}])
def test_a_nul_character_is_refused_at_any_depth(value: Any) -> None:
    with pytest.raises(ValueError, match="NUL"):
        normalized(value)


def test_a_nul_character_in_a_nested_object_is_refused() -> None:
    class Address(Struct):
        street: str

    class Move(Command):
        to: Address

    assert errors_of(Move, {"to": {"street": "High\x00Street"}}) == {"to": ["must not contain NUL characters"]}


def test_a_nul_character_is_refused_in_texts_and_in_lists_of_texts() -> None:
    assert errors_of(Book, {**VALID, "title": "a\x00", "tags": ["a", "\x00"]}) == {
        "title": ["must not contain NUL characters"],
        "tags": ["must not contain NUL characters"],
    }


def test_a_time_without_an_offset_is_utc() -> None:
    assert starts("2030-06-01T10:00:00") == dt.datetime(2030, 6, 1, 10, tzinfo=dt.UTC)


def test_a_time_with_an_offset_is_converted_to_utc() -> None:
    moment = starts("2030-06-01T10:00:00+02:30")

    assert moment == dt.datetime(2030, 6, 1, 7, 30, tzinfo=dt.UTC)
    assert moment.tzinfo is dt.UTC


@pytest.mark.parametrize(
    "text",
    [
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+00:01",
        "0001-01-01T00:00:00+14:00",
        "9000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-12:00",
    ],
)
def test_times_out_of_range_are_refused(text: str) -> None:
    assert errors_of(Book, {**VALID, "starts": text}) == {"starts": ["must lie between the years 1970 and 9000"]}


@pytest.mark.parametrize("text", ["1970-01-01T00:00:00Z", "1969-12-31T23:00:00-01:00", "8999-12-31T23:59:59.999999Z"])
def test_the_first_and_the_last_moment_in_range_are_accepted(text: str) -> None:
    assert starts(text) == dt.datetime.fromisoformat(text)


@pytest.mark.parametrize("text", ["", "tomorrow", "2030-02-30T10:00:00Z", "2030-01-01", "1893492000", "10:00"])
def test_a_text_that_is_no_time_is_refused(text: str) -> None:
    assert errors_of(Book, {**VALID, "starts": text}).keys() == {"starts"}


@for_all(
    st.datetimes(dt.datetime(1971, 1, 1), dt.datetime(8999, 1, 1)),
    st.integers(-1439, 1439).map(dt.timedelta(minutes=1).__mul__),
)
def test_a_moment_stays_the_same_moment_in_utc(local: dt.datetime, offset: dt.timedelta) -> None:
    moment = local.replace(tzinfo=dt.timezone(offset))
    converted = utc(moment)

    assert converted.tzinfo is dt.UTC
    assert converted.replace(tzinfo=None) == local - offset


def test_the_body_holds_the_fields_that_are_not_in_the_path_inside_the_wrapper() -> None:
    body = body_type(Book, ["room"], "booking")
    assert body
    decoded = msgspec.json.decode(b'{"booking": {"title": "x", "starts": "2030-01-01T10:00:00Z"}}', type=body)
    content = msgspec.structs.asdict(decoded)["booking"]

    assert content.seats == 1
    assert content.note is UNSET
    for text in (
        b'{"booking": {"title": "x", "starts": "2030-01-01T10:00:00Z", "room": 1}}',
        b'{"booking": {"title": "x", "starts": "2030-01-01T10:00:00Z"}, "more": 1}',
        b'{"title": "x", "starts": "2030-01-01T10:00:00Z"}',
    ):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(text, type=body)


def test_a_body_without_a_wrapper_has_the_fields_at_its_top() -> None:
    body = body_type(Book, ["room", "starts"], None)
    assert body

    assert msgspec.json.decode(b'{"title": "x", "seats": 2}', type=body) == body(title="x", seats=2)


def test_default_lists_are_not_shared_between_bodies() -> None:
    body = body_type(Book, ["room", "starts"], None)
    assert body
    one, other = (msgspec.structs.asdict(body(title="x")) for _ in range(2))
    one["tags"].append("changed")

    assert other["tags"] == []


def test_a_command_whose_fields_are_all_in_the_path_has_no_body() -> None:
    class Cancel(Command):
        room: Id

    assert body_type(Cancel, ["room"], "room") is None


def test_a_partial_update_holds_only_what_was_sent() -> None:
    sent = check(Book, {**VALID, "note": ""})

    assert sent_fields(sent, "note") == {"note": ""}
    assert sent_fields(check(Book, VALID), "note", "seats") == {"seats": 1}
