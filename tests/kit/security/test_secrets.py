"""Secrets at rest: one secret, a key for each purpose, and nothing readable without it."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kit.security.service_secret import Secret, SecretTooShort, UnsealError, secret

ONE = Secret(b"one secret of thirty-two characters")
OTHER = Secret(b"the other, as long as the first one")


@given(st.text())
def test_a_sealed_text_is_unsealed_and_unreadable_meanwhile(text: str) -> None:
    sealed = ONE.seal(text)

    assert ONE.unseal(sealed) == text
    assert len(text) < 4 or text.encode() not in sealed


def test_the_same_text_is_sealed_differently_each_time() -> None:
    assert ONE.seal("hf_1") != ONE.seal("hf_1")


def test_a_sealed_text_is_unsealed_by_its_own_secret_only() -> None:
    with pytest.raises(UnsealError):
        OTHER.unseal(ONE.seal("hf_1"))


@given(st.integers(min_value=0, max_value=60))
def test_a_changed_sealed_text_cannot_be_unsealed(place: int) -> None:
    sealed = bytearray(ONE.seal("hf_1"))
    sealed[place] ^= 1

    with pytest.raises(UnsealError):
        ONE.unseal(bytes(sealed))


def test_a_secret_has_a_key_for_each_purpose() -> None:
    keys = {
        secret_of_service.derive(purpose)
        for secret_of_service in (ONE, OTHER)
        for purpose in ("seal", "streams", "cookies")
    }

    assert len(keys) == 6
    assert {len(key) for key in keys} == {32}
    assert ONE.derive("streams") == Secret(ONE.value).derive("streams")


def test_a_secret_does_not_show_itself_in_logs() -> None:
    assert "thirty-two" not in repr(ONE)


def test_a_secret_in_the_settings_makes_no_file(tmp_path: Path) -> None:
    assert secret("x" * 32, tmp_path / "secret") == Secret(b"x" * 32)
    assert list(tmp_path.iterdir()) == []


def test_a_secret_without_a_setting_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "data" / "secret"
    made = secret("", path)

    assert secret("", path) == made
    assert len(made.value) == 43
    assert list(path.parent.iterdir()) == [path]
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_processes_that_start_at_once_agree_on_one_secret(tmp_path: Path) -> None:
    path = tmp_path / "data" / "secret"
    with ThreadPoolExecutor(16) as pool:
        made = [future.result() for future in [pool.submit(secret, "", path) for _ in range(64)]]

    assert len({made_secret.value for made_secret in made}) == 1
    assert list(path.parent.iterdir()) == [path]


def test_a_secret_that_could_be_guessed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("\n")

    with pytest.raises(SecretTooShort, match="has 0 characters"):
        secret("", path)
    with pytest.raises(SecretTooShort, match="needs 32"):
        secret("password", path)


def test_texts_sealed_and_signed_with_the_old_secret_are_accepted_and_can_be_resealed() -> None:
    new = Secret(b"n" * 32)
    rotating = Secret(new.value, ONE.value)
    sealed, signature = ONE.seal("a key"), ONE.signer("streams").sign("a text")

    assert rotating.unseal(sealed) == new.unseal(rotating.reseal(sealed)) == "a key"
    assert rotating.signer("streams").accepts("a text", signature)
    assert new.unseal(rotating.seal("another")) == "another"
    assert new.signer("streams").accepts("a text", rotating.signer("streams").sign("a text"))


def test_a_text_sealed_or_signed_with_a_removed_secret_is_refused() -> None:
    new = Secret(b"n" * 32)

    for method in (new.unseal, new.reseal):
        with pytest.raises(UnsealError):
            method(ONE.seal("a key"))
    assert not new.signer("streams").accepts("a text", ONE.signer("streams").sign("a text"))
    assert not new.signer("streams").accepts("a text", "\u00e9")


def test_a_signature_has_the_length_of_its_signer_and_no_part_of_it_is_accepted() -> None:
    for length in (32, 64):
        signer = ONE.signer("links", length)
        signature = signer.sign("7")

        assert len(signature) == length
        assert signer.accepts("7", signature)
        for other in (signature[:-1], signature + "0", signature[:31], ""):
            assert not signer.accepts("7", other)
