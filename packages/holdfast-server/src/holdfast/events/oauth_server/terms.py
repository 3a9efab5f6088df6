"""The terms of an authorization server: what a service lets clients do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.kit.pages.language import Language
from holdfast.kit.pages.site import Site
from holdfast.kit.security.signed_tokens import ALGORITHMS

AUTHORIZE = "/oauth/authorize"
TOKEN = "/oauth/token"  # noqa: S105 - a path
OLD_TOKEN = "/token"  # noqa: S105 - a path
"""The path at which clients of 2025-03-26 expect the endpoint. The official client tries it after each restart."""

REGISTER = "/oauth/register"
REVOKE = "/oauth/revoke"
METADATA = "/.well-known/oauth-authorization-server"


@dataclass(frozen=True)
class Terms:
    """What a service lets clients do.

    issuer            its base address, to the letter
    resource          the address that tokens are for
    scopes            what each scope allows, in one English sentence that the catalogues of the site contain
    default_scopes    the scopes for a client that requests none
    manual            the address of the documentation for authors of clients
    """

    issuer: str
    resource: str
    scopes: Mapping[str, str]
    default_scopes: Sequence[str]
    manual: str
    site: Site

    def meanings(self, scopes: Sequence[str], language: Language) -> list[str]:
        """What scopes allow, in a language."""
        texts = self.site.texts(language)
        return [texts.gettext(self.scopes[scope]) for scope in scopes]

    def metadata(self) -> dict[str, Any]:
        """The metadata of the authorization server (RFC 8414)."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}{AUTHORIZE}",
            "token_endpoint": f"{self.issuer}{TOKEN}",
            "registration_endpoint": f"{self.issuer}{REGISTER}",
            "revocation_endpoint": f"{self.issuer}{REVOKE}",
            "scopes_supported": [*self.scopes],
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
            "token_endpoint_auth_signing_alg_values_supported": sorted(ALGORITHMS),
            "revocation_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
            "revocation_endpoint_auth_signing_alg_values_supported": sorted(ALGORITHMS),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
            "protected_resources": [self.resource],
            "service_documentation": self.manual,
            "ui_locales_supported": ["en", "de"],
        }
