"""Headers of mails: a text arrives as it was written, in any script, in every version of Python."""

import os
import re
import subprocess
import sys
from base64 import b64decode
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.kit.mail import headers
from tests.kit.mail.posting import parsed_mail

VERSIONS = ("3.11", "3.12", "3.13", "3.14")

TITLES = (
    "Ελληνική βραδιά με μουσική και χορό",
    "ערב של מוזיקה וריקודים בתל אביב",
    "Soirée d'été à l'Élysée où l'on rêve",
    "Вечер живой музыки на крыше",
    "日本語の 長い 題名 が 二行 に なる こと が あります ので 注意",
    "أمسية موسيقية في القاهرة",
    "🎉 Party 🎉 with 👩‍👩‍👧‍👦 families 🎉",
    "Workshop =?utf-8?q?odd?= in ASCII",
    "x" * 1_000,
    "word " * 40 + "end",
    "ä",
    "a ä b ö c",
)

SCRIPTS = st.sampled_from(
    [
        "abcdefghijklmnopqrstuvwxyz ABC,.;:!?()\"'<>@=?_-",
        "àâäçéèêëîïôöùûüÿœæ abcdefg'",
        "αβγδεζηθικλμνξοπρστυφχψω άέήίόύώ",
        "אבגדהוזחטיכלמנסעפצקרשת ",
        "абвгдежзийклмнопрстуфхцчшщъыьэюя ",
        "ابتثجحخدذرزسشصضطظعغفقكلمنهوي ",
        "日本語中文漢字かなカナ한국어　 ",
        "กขคงจฉชซญดตถทธนบปผฝพฟภมยรลวศษสหอฮ ",
        "🎉👩🏽‍💻🇩🇪 abc",
    ]
)


def python(version: str) -> str:
    """The program of a version, such as `3.13`. Skips the test where there is none."""
    if f"{sys.version_info[0]}.{sys.version_info[1]}" == version:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [*map(str, sorted(pyenv.glob(f"{version}.*/bin/python"))), f"python{version}"]
    for program in candidates:
        try:
            version_line = subprocess.run([program, "-I", "-V"], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        if re.match(rf"Python {re.escape(version)}\.", version_line.stdout):
            return program
    pytest.skip(f"there is no Python {version} here")


@st.composite
def titles(draw: st.DrawFn) -> str:
    """A title of words in one script or several."""
    words: list[str] = []
    for _ in range(draw(st.integers(1, 12))):
        alphabet = draw(SCRIPTS)
        words.append(draw(st.text(alphabet, min_size=1, max_size=12)))
    return re.sub(" +", " ", " ".join(words)).strip() or "x"


def decoded_header(value: str) -> str:
    """A header as RFC 2047 has it, strictly: white space between two encoded words is dropped, all other is kept."""
    unfolded = value.replace("\r\n", "")
    unfolded = re.sub(r"(\?=)\s+(?==\?)", r"\1", unfolded)

    def word(match: re.Match[str]) -> str:
        return b64decode(match.group(1)).decode()  # a character is never divided between two words

    return re.sub(r"=\?utf-8\?b\?([A-Za-z0-9+/=]*)\?=", word, unfolded)


def every_header(title: str) -> str:
    """All headers that have a text, on one line of ASCII."""
    name, file = headers.mailbox("From", title, "a@b.example"), headers.disposition("attachment", title)
    return ascii(headers.text("Subject", title) + name + file)


def require_lines(name: str, value: str) -> None:
    """Hold the lines of a header to the lengths of RFC 2047 and RFC 5322."""
    for number, line in enumerate(value.split("\r\n")):
        length = len(line) + (0 if number else len(name) + 2)
        assert length <= (76 if "=?utf-8" in line else 998), line
        assert not number or line.startswith(" ")
    for word in re.findall(r"=\?utf-8\?b\?[^?]*\?=", value):
        assert len(word) <= 75


@given(titles())
@example(TITLES[0])
@example(TITLES[8])
def test_a_subject_is_decoded_to_its_text(title: str) -> None:
    value = headers.text("Subject", title)

    require_lines("Subject", value)
    assert decoded_header(value) == title
    assert str(make_header(decode_header(value.replace("\r\n", "")))) == title


@pytest.mark.parametrize("title", TITLES)
def test_a_mail_program_shows_the_subject_as_it_was_written(title: str) -> None:
    assert str(parsed_mail(subject=title)["Subject"]) == title.strip()


@given(titles())
@example('Ann "The Hammer" O\'Brien, Ltd. <sales>')
@example("Müller & Söhne GmbH & Co. KG, Abteilung für Öffentlichkeitsarbeit und Veranstaltungen in München")
def test_the_name_of_a_sender_arrives_with_its_address(name: str) -> None:
    value = headers.mailbox("From", name, "tickets@events.example")
    mail = message_from_bytes(f"From: {value}\r\n\r\n".encode("ascii"), policy=policy.default)

    require_lines("From", value)
    [sender] = mail["From"].addresses
    assert sender.addr_spec == "tickets@events.example"
    # The library of Python 3.11 shows a space between two encoded words of a name, against RFC 2047, section 6.2.
    assert name == (
        sender.display_name if name.isascii() else decoded_header(value).removesuffix(" <tickets@events.example>")
    )


@given(titles())
@example("Rechnung für Anna Müller, Élysée.pdf")
@example("日本語" * 40 + ".pdf")
@example('odd "quoted" \\ name.pdf')
def test_the_name_of_a_file_arrives(filename: str) -> None:
    value = headers.disposition("attachment", filename)
    mail = message_from_bytes(f"Content-Disposition: {value}\r\n\r\n".encode("ascii"), policy=policy.default)

    require_lines("Content-Disposition", value)
    assert mail.get_filename() == filename
    parts = re.findall(r"filename\*(?:\d+\*)?=([^;\r]*)", value)
    if parts:
        assert unquote("".join(parts)).removeprefix("utf-8''") == filename


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_python_writes_the_same_headers(version: str) -> None:
    code = (
        "import sys, importlib.util as u\n"
        "s = u.spec_from_file_location('headers', sys.argv[1]); m = u.module_from_spec(s); s.loader.exec_module(m)\n"
        "for t in sys.stdin.read().split('\\0'):\n"
        "    out = m.text('Subject', t) + m.mailbox('From', t, 'a@b.example') + m.disposition('attachment', t)\n"
        "    sys.stdout.buffer.write(ascii(out).encode() + b'\\n')\n"
    )
    expected = "".join(f"{every_header(title)}\n" for title in TITLES)
    done = subprocess.run(
        [python(version), "-X", "utf8", "-I", "-c", code, headers.__file__],
        input="\0".join(TITLES).encode(),
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == expected
