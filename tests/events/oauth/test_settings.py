"""The valid settings of an authorization server and an audience."""

import pytest

from holdfast.events.settings import Settings


@pytest.mark.parametrize(
    "issuer",
    [
        *("login.example", "https://", "https://login.example?x", "ftp://login.example", "https://a b", "https://a\n"),
        *('https://a"b', "https://a/\\", "https://a/\x7f", "https://bücher.example", "https://ann@login.example"),
    ],
)
def test_an_issuer_that_is_no_url_is_refused(issuer: str) -> None:
    with pytest.raises(ValueError, match="OAUTH_ISSUER"):
        Settings.model_validate({"OAUTH_ISSUER": issuer})


@pytest.mark.parametrize(
    "issuer",
    [
        *("", "https://login.example", "https://login.example/", "http://127.0.0.1:9/realms/x", "http://localhost"),
        *("http://localhost:8080/a", "http://127.8.8.8", "http://[::1]:9/x", "https://login.example:8443/a;b=1"),
    ],
)
def test_an_issuer_is_stored_exactly_as_set(issuer: str) -> None:
    assert Settings.model_validate({"OAUTH_ISSUER": issuer}).oauth_issuer == issuer


@pytest.mark.parametrize(
    "host",
    [
        *("login.example", "10.0.0.1", "192.168.0.1", "0.0.0.0", "[::]", "[::1", "[fe80::1]", "128.0.0.1", "2130706"),
        *("localhost.login.example", "127.0.0.1.login.example", "127.login.example", "mylocalhost", ":80"),
    ],
)
def test_an_issuer_on_another_machine_is_https(host: str) -> None:
    with pytest.raises(ValueError, match="OAUTH_ISSUER"):
        Settings.model_validate({"OAUTH_ISSUER": f"http://{host}"})


@pytest.mark.parametrize("audience", ['a"b', "a'b", "a\\b", "a\nb", "a\n", "\x00", "\x7f", "\x9b"])
def test_an_audience_that_does_not_fit_into_a_header_is_refused(audience: str) -> None:
    with pytest.raises(ValueError, match="OAUTH_AUDIENCE"):
        Settings.model_validate({"OAUTH_AUDIENCE": audience})


@pytest.mark.parametrize("audience", ["", "https://events.example/mcp", "api://7f0c", "project 7", "urn:events"])
def test_an_audience_is_stored_exactly_as_set(audience: str) -> None:
    assert Settings.model_validate({"OAUTH_AUDIENCE": audience}).oauth_audience == audience
