"""The test mail of an operator: each step is reported, with a remedy if it fails."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from holdfast.events.settings import Settings
from holdfast.kit.mail import trial
from tests.helpers.command_line import run_holdfast_in
from tests.helpers.smtp import BREAK, MailServer, login, mail_server, starttls_options

LOGIN = {"smtp_username": "ada", "smtp_password": "secret"}


async def steps(server: MailServer, **settings: Any) -> list[trial.TrialStep]:
    sends = Settings(**{**server.settings, **settings})  # pyright: ignore[reportCallIssue]
    return [step async for step in trial.send(sends, trial.trial_mail(sends, "Holdfast Events", "ann@example.com"))]


async def test_a_trial_reports_the_steps_to_a_server_with_tls_and_a_login(
    certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, context = certificate
    known = {"smtp_security": "starttls", **LOGIN}
    with mail_server(**starttls_options(context), **login("ada", "secret")) as server:
        [*_, untrusted] = await steps(server, **known)
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        steps_of_trial = await steps(server, **known)
        [*_, wrong] = await steps(server, **{**known, "smtp_password": "wrong"})
        [*_, anonymous] = await steps(server, smtp_security="starttls")

    assert untrusted.text.startswith("No encryption: ")
    assert "SSL_CERT_FILE" in untrusted.advice
    texts = [step.text for step in steps_of_trial]
    assert [text.partition(" ")[0] for text in texts] == [
        *("Connected", "Encrypted", "Logged", "Sender", "Recipient", "The"),
    ]
    assert texts[-1] == "The mail server has accepted the mail"
    assert not any(step.advice for step in steps_of_trial)
    assert server.recipients() == ["ann@example.com"]
    assert server.received[0].mail["Subject"] == "Holdfast Events: a test"
    assert wrong.text.startswith("No login as ada: 535 ")
    assert wrong.advice.startswith("Check SMTP_USERNAME and SMTP_PASSWORD.")
    assert "Set SMTP_USERNAME and SMTP_PASSWORD." in anonymous.advice


@pytest.mark.parametrize(
    ("answers", "settings", "text", "advice"),
    [
        ({"MAIL": "550 not you"}, {}, "The sender tickets@events.example was refused: 550 not you", "MAIL_FROM"),
        ({"RCPT": "550 nobody"}, {}, "The recipient ann@example.com was refused: 550 nobody", "Check the address."),
        ({"DATA": "554 spam"}, {}, "The mail was refused: 554 spam", "The words of the server"),
        ({"RCPT": BREAK}, {}, "The recipient ann@example.com was refused: ", "Check the address."),
        ({}, {"smtp_security": "tls"}, "No connection to ", "SMTP_SECURITY to starttls"),
        ({}, {"smtp_security": "starttls"}, "No encryption: ", "SMTP_SECURITY to starttls"),
        ({}, {"smtp_host": "nowhere.invalid"}, "No connection to nowhere.invalid", "Check SMTP_HOST."),
        ({}, {"smtp_port": 1}, "No connection to 127.0.0.1, port 1: ", "Check SMTP_HOST and SMTP_PORT"),
        ({}, LOGIN, "No login as ada: ", "takes no login on this port"),
    ],
)
async def test_the_step_that_fails_is_the_last_and_says_what_to_do(
    answers: dict[str, str], settings: dict[str, Any], text: str, advice: str, server: MailServer
) -> None:
    server.answers = {command: [answer] for command, answer in answers.items()}

    [*before, failed] = await steps(server, **settings)

    assert failed.text.startswith(text)
    assert advice in failed.advice
    assert not any(step.advice for step in before)
    assert server.received == []


def test_the_command_shows_the_steps_and_exits_with_1_after_one_that_failed(server: MailServer, tmp_path: Path) -> None:
    settings = {name.upper(): str(value) for name, value in server.settings.items()}

    accepted = run_holdfast_in(tmp_path, "events", "mail", "test", "ann@example.com", **settings)
    server.answers["RCPT"] = ["550 nobody"]
    refusal = run_holdfast_in(tmp_path, "inventory", "mail", "test", "ann@example.com", **settings)

    assert accepted.returncode == 0
    assert "✓ The mail server has accepted the mail\n" in accepted.stdout
    assert "Set EVENTS_BASE_URL too" in accepted.stderr
    assert refusal.returncode == 1
    assert refusal.stdout.splitlines()[-2:] == [
        "✗ The recipient ann@example.com was refused: 550 nobody",
        (
            "  Check the address. If the server says that it relays no mails, it wants a login: set SMTP_USERNAME and "
            "SMTP_PASSWORD."
        ),
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_trial_without_a_mail_server_names_the_file_of_the_mail(tmp_path: Path) -> None:
    written = run_holdfast_in(tmp_path, "inventory", "mail", "test", "ann@example.com", SMTP_HOST="")

    [file] = (tmp_path / ".holdfast/mail").iterdir()
    assert written.stdout == f"SMTP_HOST is not set, so mails are files. This one is {file}\n"
    assert b"Subject: Holdfast Inventory: a test" in file.read_bytes()
    wrong = run_holdfast_in(tmp_path, "inventory", "mail", "test", "ann")
    assert (wrong.returncode, wrong.stderr) == (1, "ann is no e-mail address.\n")
