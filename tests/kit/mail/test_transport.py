"""How mails leave: over SMTP, with every fault a mail server can have, or as files."""

import ssl
from collections.abc import Awaitable, Callable
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest

from holdfast.events.service import EVENTS
from holdfast.events.settings import Settings
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.environment.variables import read_settings
from holdfast.kit.mail import transport
from holdfast.kit.mail.transport import FileMailer, MailDeferral, Mailer, MailRefusal, MailServerUnavailable, mailer_of
from holdfast.kit.process.checks.check_list import run_checks
from holdfast.kit.process.checks.inspection import Inspection
from holdfast.kit.process.checks.partners import check_mail_server
from tests.helpers.smtp import BREAK, NEVER, MailServer, login, mail_server, starttls_options
from tests.kit.mail.posting import confirm_at_once, envelope


def settings_for(server: MailServer, tmp_path: Path, **settings: Any) -> Settings:
    return Settings(data_dir=tmp_path, **{**server.settings, **settings})  # pyright: ignore[reportCallIssue]


def mailer_for(server: MailServer, tmp_path: Path, **settings: Any) -> Mailer:
    return mailer_of(settings_for(server, tmp_path, **settings))


async def carry(by: Mailer, *recipients: str, last: Callable[[], Awaitable[None]] = confirm_at_once) -> list[str]:
    """Send a mail to each over one connection. Returns how each went."""
    went: list[str] = []
    async with by.carrier() as carrier:
        for recipient in recipients:
            try:
                await carrier.carry(envelope(recipient), last)
                went.append("sent")
            except (MailRefusal, MailDeferral, MailServerUnavailable) as error:
                went.append(type(error).__name__)
    return went


@pytest.fixture(autouse=True, params=[["PIPELINING"], []], ids=["pipelined", "command by command"])
def _offers(server: MailServer, request: pytest.FixtureRequest) -> None:
    """The server takes several commands at once, or does not."""
    server.offers = request.param


async def test_mails_share_a_connection_and_arrive_as_they_were_written(server: MailServer, tmp_path: Path) -> None:
    went = await carry(mailer_for(server, tmp_path), "ann@example.com", "bob@example.com")

    assert went == ["sent", "sent"]
    assert server.recipients() == ["ann@example.com", "bob@example.com"]
    assert server.connections() == 1
    body = server.received[0].mail.get_body(("plain",))
    assert body
    assert body.get_content().splitlines() == ["A seat.", ".", "End"]
    assert server.received[0].message_id == "1.5@events.example"
    assert [command for _, command, _ in server.commands][-1] == "QUIT"


async def test_a_connection_sends_nothing_after_an_accepted_mail_until_the_next_one(
    server: MailServer, tmp_path: Path
) -> None:
    async with mailer_for(server, tmp_path).carrier() as carrier:
        await carrier.carry(envelope("ann@example.com"), confirm_at_once)
        assert not server.received[0].is_proved
        await carrier.carry(envelope("bob@example.com"), confirm_at_once)
        assert server.received[0].is_proved
        assert not server.received[1].is_proved


@pytest.mark.parametrize("command", ["RCPT", "DATA"])
@pytest.mark.parametrize(("reply", "kind"), [("550 5.1.1 nobody", "MailRefusal"), ("451 4.7.1 later", "MailDeferral")])
async def test_a_refused_mail_leaves_the_connection_usable(
    command: str, reply: str, kind: str, server: MailServer, tmp_path: Path
) -> None:
    server.answers[f"{command} bob@example.com"] = [reply]

    went = await carry(mailer_for(server, tmp_path), "ann@example.com", "bob@example.com", "cy@example.com")

    assert went == ["sent", kind, "sent"]
    assert server.connections() == 1


async def test_a_refused_mail_raises_the_words_of_the_server(server: MailServer, tmp_path: Path) -> None:
    server.answers["RCPT"] = ["550 5.1.1 no such person"]
    async with mailer_for(server, tmp_path).carrier() as carrier:
        with pytest.raises(MailRefusal, match=r"^550 5\.1\.1 no such person$"):
            await carrier.carry(envelope("ann@example.com"), confirm_at_once)


async def test_an_invalid_address_is_refused_before_a_command_is_sent(server: MailServer, tmp_path: Path) -> None:
    assert await carry(mailer_for(server, tmp_path), "ann@example.com>\r\nQUIT") == ["MailRefusal"]
    assert server.commands == []


@pytest.mark.parametrize(
    ("command", "reply", "kind"),
    [
        ("MAIL", "550 not from you", "MailServerUnavailable"),
        ("MAIL", NEVER, "MailServerUnavailable"),
        ("MAIL", BREAK, "MailServerUnavailable"),
        ("RCPT", NEVER, "ConnectionLostAtContent"),
        ("RCPT", BREAK, "ConnectionLostAtContent"),
        ("DATA", NEVER, "ConnectionLostAtContent"),
        ("DATA", BREAK, "ConnectionLostAtContent"),
    ],
)
async def test_a_connection_that_breaks_is_replaced_by_a_new_one(
    command: str, reply: str, kind: str, server: MailServer, tmp_path: Path
) -> None:
    server.answers[command] = [reply, ""]

    assert await carry(mailer_for(server, tmp_path), "ann@example.com", "ann@example.com") == [kind, "sent"]
    assert server.recipients() == ["ann@example.com"]


async def test_a_connection_that_the_server_closed_meanwhile_is_replaced_at_once(
    server: MailServer, tmp_path: Path
) -> None:
    async with mailer_for(server, tmp_path).carrier() as carrier:
        await carrier.carry(envelope("ann@example.com"), confirm_at_once)
        server.stop()
        server.start()
        await carrier.carry(envelope("bob@example.com"), confirm_at_once)

    assert server.recipients() == ["ann@example.com", "bob@example.com"]


async def test_an_unreachable_server_raises_mail_server_unavailable(server: MailServer, tmp_path: Path) -> None:
    server.stop()
    assert await carry(mailer_for(server, tmp_path), "ann@example.com") == ["MailServerUnavailable"]


async def test_a_mail_withdrawn_in_the_last_moment_is_not_sent(server: MailServer, tmp_path: Path) -> None:
    async def stop() -> None:
        raise RuntimeError("no longer")

    async with mailer_for(server, tmp_path).carrier() as carrier:
        with pytest.raises(RuntimeError, match="no longer"):
            await carrier.carry(envelope("ann@example.com"), stop)
        await carrier.carry(envelope("bob@example.com"), confirm_at_once)

    assert server.recipients() == ["bob@example.com"]


# Encryption and login


async def test_mails_are_encrypted_and_the_password_is_sent_only_over_tls(
    certificate: tuple[Path, ssl.SSLContext], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, context = certificate
    known = {"smtp_security": "starttls", "smtp_username": "ada", "smtp_password": "secret"}
    monkeypatch.setattr(transport, "CONNECT_TIMEOUT_SECONDS", 2)
    with mail_server(**starttls_options(context), **login("ada", "secret")) as server:
        assert await carry(mailer_for(server, tmp_path, **known), "ann@example.com") == ["MailServerUnavailable"]
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        assert await carry(mailer_for(server, tmp_path, **known), "ann@example.com") == ["sent"]
        wrong = {**known, "smtp_password": "wrong"}
        assert await carry(mailer_for(server, tmp_path, **wrong), "ann@example.com") == ["MailServerUnavailable"]
        assert len(server.received) == 1


async def test_a_server_without_the_required_encryption_gets_no_mail(server: MailServer, tmp_path: Path) -> None:
    assert await carry(mailer_for(server, tmp_path, smtp_security="starttls"), "ann@example.com") == [
        "MailServerUnavailable"
    ]
    assert await carry(mailer_for(server, tmp_path, smtp_security="tls"), "ann@example.com") == [
        "MailServerUnavailable"
    ]
    assert server.received == []


async def test_the_check_of_operators_logs_in_and_sends_no_mail(
    certificate: tuple[Path, ssl.SSLContext], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, context = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with mail_server(**starttls_options(context), **login("ada", "secret")) as server:
        right = settings_for(server, tmp_path, smtp_security="starttls", smtp_username="ada", smtp_password="secret")
        limited = right.model_copy(update={"smtp_max_per_second": 14})
        wrong = right.model_copy(update={"smtp_password": "wrong"})

        results = [
            (await run_checks(Inspection(EVENTS, account), [check_mail_server]))[0]
            for account in (right, wrong, limited)
        ]

    assert [finding.status for finding in results] == ["ok", "wrong", "ok"]
    assert results[1].message.startswith("127.0.0.1 refuses the login: 535")
    assert results[1].remedy == "Correct SMTP_USERNAME and SMTP_PASSWORD."
    assert results[2].message.endswith(", at most 14 a second.")
    assert [command for _, command, _ in server.commands] == 2 * ["MAIL", "QUIT"]


# Files


async def test_mails_without_a_server_are_files_and_a_second_copy_replaces_the_first(tmp_path: Path) -> None:
    by = mailer_of(Settings(data_dir=tmp_path))  # pyright: ignore[reportCallIssue]

    assert await carry(by, "ann@example.com", "ann@example.com") == ["sent", "sent"]

    [file] = (tmp_path / "mail").iterdir()
    assert file.name == "1.5.eml"
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert message_from_bytes(file.read_bytes(), policy=policy.default)["To"] == "ann@example.com"


async def test_a_directory_that_cannot_be_written_to_loses_no_mail(tmp_path: Path) -> None:
    (tmp_path / "mail").write_text("not a directory")
    assert await carry(FileMailer(tmp_path / "mail", "a@b.example"), "ann@example.com") == ["MailServerUnavailable"]


# Settings


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"SMTP_HOST": "smtp://mail.example"}, "SMTP_HOST must be the name"),
        ({"SMTP_HOST": "mail.example:25"}, "SMTP_HOST must be the name"),
        ({"SMTP_HOST": "mail.example"}, "MAIL_FROM is required with SMTP_HOST"),
        ({"SMTP_PORT": "70000"}, "SMTP_PORT must be at most 65535"),
        ({"SMTP_SECURITY": "ssl"}, "SMTP_SECURITY must be one of 'starttls', 'tls' or 'none'"),
        ({"SMTP_USERNAME": "ada"}, "SMTP_PASSWORD and SMTP_USERNAME are set together"),
        ({"SMTP_PASSWORD": "secret"}, "SMTP_PASSWORD and SMTP_USERNAME are set together"),
        (
            {"SMTP_HOST": "mail.example", "SMTP_SECURITY": "none", "SMTP_USERNAME": "a", "SMTP_PASSWORD": "secret"},
            "SMTP_PASSWORD would cross the network unencrypted",
        ),
        ({"MAIL_FROM": "Tickets"}, "MAIL_FROM must look like Tickets <tickets@example.com>"),
        ({"MAIL_FROM": "a@b.example\nBcc: c@d.example"}, "MAIL_FROM must look like"),
    ],
)
def test_invalid_settings_of_mails_are_refused_with_what_would_be_right(
    variables: dict[str, str], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CannotStart) as refusal:
        read_settings(Settings)
    assert text in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_good_settings_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    good = {"SMTP_HOST": "mail.example", "MAIL_FROM": "Tickets <tickets@example.com>", "SMTP_PORT": "2525"}
    for name, value in {**good, "SMTP_USERNAME": "ada", "SMTP_PASSWORD": "secret"}.items():
        monkeypatch.setenv(name, value)
    assert read_settings(Settings).smtp_security == "starttls"
    assert mailer_of(read_settings(Settings)).domain == "example.com"
