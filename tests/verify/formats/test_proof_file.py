"""Proof files, as C2SP's tlog-proof describes them."""

import pytest

from holdfast_verify.formats.proof_file import InvalidProofFile, ProofFile, parse_proof_file
from holdfast_verify.formats.signed_note import encode_base64

NOTE = "example.com/fancylog\n109482\nsFodV/vSp5O8n9a8QpW6PRY97tfOSW5bsc2Xl/EQi08=\n\n— example.com/fancylog AAAAAAA=\n"
FILE = f"""c2sp.org/tlog-proof@v1
extra YWdl
index 73894
gSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlQ=
B95lDa8R83lS8n0eG+o0buTxRKQTYFi//1U8anccXmA=

{NOTE}"""


def test_a_proof_file_is_parsed_to_its_parts_and_written_back() -> None:
    proof = parse_proof_file(FILE)

    assert (proof.index, proof.checkpoint, proof.extra) == (73894, NOTE, b"age")
    assert encode_base64(proof.hashes[1]) == "B95lDa8R83lS8n0eG+o0buTxRKQTYFi//1U8anccXmA="
    assert proof.text == FILE


def test_a_log_of_one_entry_has_a_proof_without_hashes() -> None:
    proof = ProofFile(0, [], NOTE)

    assert proof.text == f"c2sp.org/tlog-proof@v1\nindex 0\n\n{NOTE}"
    assert parse_proof_file(proof.text) == proof


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The file is not a proof that an entry is in a log."),
        (FILE.replace("@v1", "@v2"), "The file is not a proof that an entry is in a log."),
        (FILE.replace("index 73894", "index 073894"), "The file is not a proof that an entry is in a log."),
        (FILE.replace("index 73894", "index -1"), "The file is not a proof that an entry is in a log."),
        (FILE.replace("index 73894\n", ""), "The file is not a proof that an entry is in a log."),
        (FILE.replace("YWdl", ""), "The file is not a proof that an entry is in a log."),
        (FILE.replace("YWdl", "YWd"), "A line of the proof is not in base64."),
        (FILE.replace("PlQ=", "PlR="), "A line of the proof is not in base64."),
        (FILE.replace("gSKy", "gSKé"), "A line of the proof is not in base64."),
        (FILE.replace("gSKy", ""), "A hash of the proof does not have 32 bytes."),
        (FILE.replace("XmA=\n\n", "XmA=\n"), "A line of the proof is not in base64."),
        (FILE.partition(NOTE)[0], "The file is not a proof that an entry is in a log."),
        (FILE.replace("\n", "\r\n"), "The file is not a proof that an entry is in a log."),
    ],
)
def test_an_invalid_proof_file_is_refused_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InvalidProofFile) as refusal:
        parse_proof_file(text)

    assert str(refusal.value) == sentence
