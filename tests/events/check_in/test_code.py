"""The short code of a registration: it is read as people say it, and gives nothing away."""

from hypothesis import given
from hypothesis import strategies as some

from holdfast.events.registrations import links
from holdfast.events.registrations.code import PROOF, read_spoken, spoken
from holdfast.events.registrations.links import OUTCOME, OWN, Link
from holdfast.kit.secrets import Secret

SECRET = Secret(b"s" * 32)

arrivals = some.integers(1, 2**60 - 1)
marks = some.text(" -", max_size=3)


@given(arrivals, marks, some.booleans())
def test_a_code_is_read_however_it_is_typed(arrival: int, mark: str, lower: bool) -> None:
    code = spoken(links.write(SECRET, OWN, Link(7, "aaaaaaaa", arrival)))
    text = mark.join(str(code)).replace("0", "O").replace("1", "I")

    assert read_spoken(text.lower() if lower else text) == code
    assert code.arrival == arrival
    assert len(code.proof) == PROOF


@given(some.text(max_size=30))
def test_any_text_is_a_code_or_none(text: str) -> None:
    read = read_spoken(text)

    assert read is None or read_spoken(str(read)) == read


def test_a_code_is_not_that_of_another_event_person_time_or_kind_of_link() -> None:
    others = [
        links.write(SECRET, OWN, Link(8, "aaaaaaaa", 5)),
        links.write(SECRET, OWN, Link(7, "bbbbbbbb", 5)),
        links.write(SECRET, OUTCOME, Link(7, "aaaaaaaa", 5)),
        links.write(Secret(b"t" * 32), OWN, Link(7, "aaaaaaaa", 5)),
    ]

    proofs = {spoken(each).proof for each in [links.write(SECRET, OWN, Link(7, "aaaaaaaa", 5)), *others]}

    assert len(proofs) == 5


def test_codes_stay_valid_while_the_secret_is_exchanged() -> None:
    link = Link(7, "aaaaaaaa", 5)
    both = Secret(b"t" * 32, SECRET.value)

    valid = [spoken(each) for each in links.every(both, OWN, link)]

    assert spoken(links.write(SECRET, OWN, link)) in valid
    assert spoken(links.write(both, OWN, link)) == valid[0]


def test_the_same_link_always_has_the_same_code() -> None:
    # Codes were sent by mail: another way to make them would lock people out.
    assert str(spoken(f"7-aaaaaaaa-12345-{'0' * 32}")) == "C1S-4QF736"
