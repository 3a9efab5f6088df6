"""Certificates are held against the name that was asked for, though the connection goes to an address."""

import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from holdfast.kit.outbound import Outbound, Refused
from tests.outside import LOCAL, ok, reaching, refusal, serving


class Authority:
    """Somebody who issues certificates."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Tests")])
        self.certificate = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *extensions: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1))
        for each in extensions:
            builder = builder.add_extension(each, critical=isinstance(each, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())

    def believed(self) -> ssl.SSLContext:
        pem = self.certificate.public_bytes(serialization.Encoding.PEM).decode()
        return ssl.create_default_context(cadata=pem)

    def issue(self, *names: str) -> ssl.SSLContext:
        """A server's certificate for host names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives = [
            x509.IPAddress(ipaddress.ip_address(each)) if each[0].isdigit() else x509.DNSName(each) for each in names
        ]
        certificate = self._signed(x509.Name([]), key, x509.SubjectAlternativeName(alternatives))
        file = self._directory / "server.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


async def fetch_securely(tls: ssl.SSLContext, trust: ssl.SSLContext, host: str) -> bytes:
    async def look_up(host: str, port: int) -> Sequence[str]:
        return [LOCAL]

    async with serving(ok(b"secure"), tls) as server:
        client = Outbound(exempt=[(LOCAL, server.port)], trust=trust, look_up=look_up)
        return (await client.get(f"https://{host}:{server.port}/", limit=10)).content


@pytest.mark.parametrize("host", ["photos.example", "127.0.0.1"])
async def test_a_certificate_is_held_against_the_name_though_the_connection_goes_to_an_address(
    tmp_path: Path, host: str
) -> None:
    authority = Authority(tmp_path)

    assert await fetch_securely(authority.issue(host), authority.believed(), host) == b"secure"


async def test_a_certificate_for_another_name_or_by_a_stranger_is_not_believed(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path), Authority(tmp_path)

    for tls in (
        authority.issue("other.example"),
        authority.issue("127.0.0.1"),
        stranger.issue("photos.example"),
    ):
        with pytest.raises(Refused, match="no certificate to be believed"):
            await fetch_securely(tls, authority.believed(), "photos.example")


async def test_nobody_is_believed_whom_the_system_does_not_believe(tmp_path: Path) -> None:
    async with serving(ok(b"secure"), Authority(tmp_path).issue("127.0.0.1")) as server:
        assert "certificate" in await refusal(reaching(server), f"https://{LOCAL}:{server.port}/")
