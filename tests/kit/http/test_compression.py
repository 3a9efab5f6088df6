"""Answers are compressed for clients that accept it, as RFC 9110 says."""

import pytest

from holdfast.kit.http.answers import accepts_gzip


@pytest.mark.parametrize(
    ("header", "is_accepted"),
    [
        (b"gzip", True),
        (b"GZIP;q=0.5, br", True),
        (b"*", True),
        (b"*;q=0, gzip", True),
        (b"br, *;q=0.1", True),
        (b"", False),
        (b"br", False),
        (b"gzip;q=0", False),
        (b"gzip; q=0.000", False),
        (b"*, gzip;q=0", False),
        (b"*;q=0", False),
    ],
)
def test_gzip_is_accepted_by_its_name_or_else_by_the_name_for_all_others(header: bytes, is_accepted: bool) -> None:
    assert accepts_gzip(header) is is_accepted
