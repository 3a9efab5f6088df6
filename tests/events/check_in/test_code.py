"""The short code of a registration: it is read as people say it, and gives nothing away."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.events.registrations import links
from holdfast.events.registrations.entrance_code import PROOF_LENGTH, parse_short_code, short_code
from holdfast.events.registrations.links import OUTCOME_PAGE, OWN_PAGE, Link
from holdfast.kit.security.service_secret import Secret

SECRET = Secret(b"s" * 32)

arrivals = st.integers(1, 2**60 - 1)
marks = st.text(" -", max_size=3)


@given(arrivals, marks, st.booleans())
def test_a_code_is_read_however_it_is_typed(arrival: int, mark: str, lower: bool) -> None:
    code = short_code(links.write(SECRET, OWN_PAGE, Link(7, "aaaaaaaa", arrival)))
    text = mark.join(str(code)).replace("0", "O").replace("1", "I")

    assert parse_short_code(text.lower() if lower else text) == code
    assert code.arrival == arrival
    assert len(code.proof) == PROOF_LENGTH


@given(st.text(max_size=30))
def test_any_text_is_a_code_or_none(text: str) -> None:
    read = parse_short_code(text)

    assert read is None or parse_short_code(str(read)) == read


def test_a_code_is_not_that_of_another_event_person_time_or_kind_of_link() -> None:
    others = [
        links.write(SECRET, OWN_PAGE, Link(8, "aaaaaaaa", 5)),
        links.write(SECRET, OWN_PAGE, Link(7, "bbbbbbbb", 5)),
        links.write(SECRET, OUTCOME_PAGE, Link(7, "aaaaaaaa", 5)),
        links.write(Secret(b"t" * 32), OWN_PAGE, Link(7, "aaaaaaaa", 5)),
    ]

    proofs = {short_code(text).proof for text in [links.write(SECRET, OWN_PAGE, Link(7, "aaaaaaaa", 5)), *others]}

    assert len(proofs) == 5


def test_codes_stay_valid_while_the_secret_is_exchanged() -> None:
    link = Link(7, "aaaaaaaa", 5)
    both = Secret(b"t" * 32, SECRET.value)

    valid = [short_code(text) for text in links.valid_texts(both, OWN_PAGE, link)]

    assert short_code(links.write(SECRET, OWN_PAGE, link)) in valid
    assert short_code(links.write(both, OWN_PAGE, link)) == valid[0]


def test_the_same_link_always_has_the_same_code() -> None:
    # Codes were sent by mail: another way to make them would lock people out.
    assert str(short_code(f"7-aaaaaaaa-12345-{'0' * 32}")) == "C1S-4QF736"
