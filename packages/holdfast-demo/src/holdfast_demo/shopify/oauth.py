"""Installing the app, and its tokens: codes, token exchange, refreshing with rotation, uninstalling."""

import base64
import binascii
import hmac
import json
import secrets
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from holdfast_demo.shopify import payloads
from holdfast_demo.shopify.errors import OAuthRefusal, ShopifyRefusal
from holdfast_demo.shopify.model import Shop, Subscription
from holdfast_demo.shopify.platform_state import SCOPES, PlatformState

TABLES = """
create table if not exists codes (
    code text primary key, shop text not null, scopes text not null, made real not null, used integer not null default 0
);
create table if not exists tokens (
    number integer primary key autoincrement,
    token text not null unique,
    shop text not null,
    online integer not null,
    ends real,
    refresh text unique,
    refresh_ends real,
    replaces integer
);
create index if not exists tokens_of_a_shop on tokens (shop);
"""

CODE_SECONDS = 60
TOKEN_SECONDS = 3600
ONLINE_SECONDS = 86_400
REFRESH_SECONDS = 90 * 86_400
SESSION_SECONDS = 60
LEEWAY_SECONDS = 10

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105 - the name of a kind of token
OFFLINE = "urn:shopify:params:oauth:token-type:offline-access-token"
ONLINE = "urn:shopify:params:oauth:token-type:online-access-token"

Params = Mapping[str, Any]


class OAuth:
    """Installations, tokens and scopes of the app at each shop."""

    def __init__(self, platform: PlatformState) -> None:
        self._platform = platform
        self._db = platform.store.db
        self._db.executescript(TABLES)

    # Installing

    def check_request(self, params: Mapping[str, str]) -> list[str]:
        """The scopes that a request for an installation names. Raises `ShopifyRefusal`."""
        app = self._platform.app
        if params.get("client_id") != app.client_id:
            raise ShopifyRefusal("Oauth error invalid_request: Could not find an application with this client_id.")
        if params.get("redirect_uri") not in app.redirect_urls:
            raise ShopifyRefusal("Oauth error invalid_request: The redirect_uri is not whitelisted.")
        if not params.get("state"):
            raise ShopifyRefusal("The state is missing. The platform would go on without it, but no app should.")
        scopes = [scope.strip() for scope in params.get("scope", "").split(",") if scope.strip()]
        if unknown := sorted(set(scopes) - SCOPES):
            raise ShopifyRefusal(f"Oauth error invalid_scope: These access scopes are invalid: {', '.join(unknown)}.")
        return _without_implied(scopes)

    def install(self, domain: str, scopes: list[str]) -> None:
        """Install the app at a shop, as when a merchant agrees. Raises `ShopifyRefusal`."""
        with self._platform.happening():
            shop = self._platform.shop(domain)
            shop.installed, shop.scopes = True, _without_implied(scopes)
            self._platform.store.put(domain, shop)

    def agreed(self, domain: str, params: Mapping[str, str]) -> str:
        """Install the app for a merchant who agreed, and return the redirect address. Raises `ShopifyRefusal`."""
        scopes = self.check_request(params)
        with self._platform.happening():
            self.install(domain, scopes)
            code = secrets.token_hex(16)
            row = (code, domain, ",".join(scopes), self._platform.now())
            self._db.execute("insert into codes (code, shop, scopes, made) values (?, ?, ?, ?)", row)
        back = {"code": code, "host": host(domain), "shop": domain, "state": params["state"]}
        return f"{params['redirect_uri']}?{self.signed({**back, 'timestamp': str(int(self._platform.now()))})}"

    def signed(self, params: Mapping[str, str]) -> str:
        """Parameters as a query with the platform's signature."""
        message = "&".join(f"{name}={params[name]}" for name in sorted(params))
        signature = hmac.digest(self._platform.app.client_secret.encode(), message.encode(), "sha256").hex()
        return urlencode({**params, "hmac": signature})

    def uninstall(self, domain: str) -> None:
        """Remove the app from a shop: its tokens end at once, and a webhook reports it. Raises `ShopifyRefusal`."""
        with self._platform.happening():
            shop = self._platform.shop(domain)
            if not shop.installed:
                raise ShopifyRefusal(f"The shop {domain} does not have the app.")
            self._platform.send_message(domain, "app/uninstalled", payloads.shop(shop))
            shop.installed, shop.scopes = False, []
            self._platform.store.put(domain, shop)
            self.revoke(domain)
            for subscription in self._platform.store.select(Subscription, domain):
                self._platform.store.remove(domain, subscription)

    def revoke(self, domain: str) -> None:
        """End all tokens of a shop."""
        self._db.execute("delete from tokens where shop = ?", (domain,))
        self._db.execute("delete from codes where shop = ?", (domain,))

    # Tokens

    def answer(self, domain: str, params: Params) -> dict[str, Any]:
        """The answer of the token endpoint of a shop. Raises `OAuthRefusal`."""
        shop = self._platform.find_shop(domain)
        if shop is None:
            raise OAuthRefusal("invalid_request", "There is no such shop.", 404)
        app = self._platform.app
        if params.get("client_id") != app.client_id or params.get("client_secret") != app.client_secret:
            raise OAuthRefusal("invalid_client", "Client authentication failed.", 401)
        with self._platform.happening():
            match params.get("grant_type"):
                case None | "authorization_code":
                    return self._redeem_code(shop, params)
                case "refresh_token":
                    return self._refresh(shop, params)
                case "client_credentials" if not app.of_shops:
                    raise OAuthRefusal("shop_not_permitted", "The app and the shop are of different organizations.")
                case "client_credentials":
                    return self._issue(self._require_installed(shop), ends=ONLINE_SECONDS - 1, refresh=False)
                case grant if grant == EXCHANGE:
                    return self._exchange(shop, params)
                case _:
                    raise OAuthRefusal("unsupported_grant_type", "The grant type is not supported.")

    def _redeem_code(self, shop: Shop, params: Params) -> dict[str, Any]:
        row = self._db.execute(
            "update codes set used = 1 where code = ? and shop = ? and used = 0 and made > ? returning scopes",
            (params.get("code"), shop.domain, self._platform.now() - CODE_SECONDS),
        ).fetchall()
        if not row:
            raise OAuthRefusal("invalid_request", "The authorization code was not found or was already used")
        return self._expiring(shop, params)

    def _expiring(self, shop: Shop, params: Params) -> dict[str, Any]:
        if str(params.get("expiring", "")) not in {"1", "true", "True"}:
            raise OAuthRefusal("invalid_request", "Apps have to use offline access tokens that expire: expiring=1.")
        return self._issue(self._require_installed(shop), ends=TOKEN_SECONDS, refresh=True)

    def _exchange(self, shop: Shop, params: Params) -> dict[str, Any]:
        if params.get("subject_token_type") != ID_TOKEN:
            raise OAuthRefusal("invalid_request", "The subject_token_type is not supported.")
        self._check_session(shop.domain, str(params.get("subject_token", "")))
        match params.get("requested_token_type"):
            case kind if kind == OFFLINE:
                return self._expiring(shop, params)
            case kind if kind == ONLINE:
                answer = self._issue(self._require_installed(shop), ends=ONLINE_SECONDS - 1, refresh=False, online=True)
                return {**answer, "associated_user_scope": answer["scope"], "associated_user": {"id": 1}}
            case _:
                raise OAuthRefusal("invalid_request", "The requested_token_type is not supported.")

    def _refresh(self, shop: Shop, params: Params) -> dict[str, Any]:
        """Issue a new pair of tokens. The old pair ends when one of the new pair is used; until then it can be
        refreshed again, in case the app has lost the answer.
        """
        row = self._db.execute(
            "select number, replaces from tokens where shop = ? and refresh = ? and refresh_ends > ?",
            (shop.domain, params.get("refresh_token"), self._platform.now()),
        ).fetchone()
        if row is None or not shop.installed:
            raise OAuthRefusal("invalid_grant", "The refresh token is invalid, has expired or was replaced.")
        number, replaces = row
        self._db.execute("delete from tokens where replaces = ? or number = ?", (number, replaces))
        return self._issue(shop, ends=TOKEN_SECONDS, refresh=True, replaces=number)

    def _require_installed(self, shop: Shop) -> Shop:
        if not shop.installed:
            raise OAuthRefusal("app_not_installed", "The app is not installed on this shop.")
        return shop

    def _issue(
        self, shop: Shop, *, ends: int, refresh: bool, online: bool = False, replaces: int | None = None
    ) -> dict[str, Any]:
        now = self._platform.now()
        token = f"shpat_{secrets.token_hex(16)}"
        second = f"shprt_{secrets.token_hex(16)}" if refresh else None
        self._db.execute(
            "insert into tokens (token, shop, online, ends, refresh, refresh_ends, replaces)"
            " values (?, ?, ?, ?, ?, ?, ?)",
            (token, shop.domain, online, now + ends, second, now + REFRESH_SECONDS, replaces),
        )
        answer: dict[str, Any] = {"access_token": token, "scope": ",".join(shop.scopes), "expires_in": ends}
        if second:
            answer |= {"refresh_token": second, "refresh_token_expires_in": REFRESH_SECONDS}
        return answer

    def allowed(self, domain: str, token: str) -> Shop | None:
        """The shop if a token gives access to it, else None."""
        row = self._db.execute(
            "select number, replaces from tokens where shop = ? and token = ? and ends > ?",
            (domain, token, self._platform.now()),
        ).fetchone()
        shop = self._platform.find_shop(domain)
        if row is None or shop is None or not shop.installed:
            return None
        number, replaces = row
        if replaces is not None:
            with self._platform.store.change():
                self._db.execute("delete from tokens where number = ?", (replaces,))
                self._db.execute("update tokens set replaces = null where number = ?", (number,))
        return shop

    # Session tokens

    def session_token(self, domain: str, *, user: int = 1, at: float | None = None, **claims: Any) -> str:
        """A session token as the admin issues one to the app's pages. Tests can change its claims."""
        now = int(self._platform.now() if at is None else at)
        body = {
            "iss": f"https://{domain}/admin",
            "dest": f"https://{domain}",
            "aud": self._platform.app.client_id,
            "sub": str(user),
            "exp": now + SESSION_SECONDS,
            "nbf": now,
            "iat": now,
            "jti": str(uuid.uuid4()),
            "sid": secrets.token_hex(16),
            **claims,
        }
        head = _encoded(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
        message = f"{head}.{_encoded(json.dumps(body).encode())}"
        return f"{message}.{self._jwt_signature(message)}"

    def _jwt_signature(self, message: str) -> str:
        return _encoded(hmac.digest(self._platform.app.client_secret.encode(), message.encode(), "sha256"))

    def _check_session(self, domain: str, token: str) -> None:
        message, _, signature = token.rpartition(".")
        try:
            head, body = (json.loads(_decoded(part)) for part in message.split("."))
            good = (
                head["alg"] == "HS256"
                and hmac.compare_digest(signature.encode(), self._jwt_signature(message).encode())
                and body["aud"] == self._platform.app.client_id
                and body["dest"] == f"https://{domain}"
                and body["exp"] > self._platform.now() - LEEWAY_SECONDS
                and body["nbf"] < self._platform.now() + LEEWAY_SECONDS
            )
        except (ValueError, KeyError, TypeError, binascii.Error):
            good = False
        if not good:
            raise OAuthRefusal("invalid_subject_token", "The session token is invalid or has expired.")


def host(domain: str) -> str:
    """The name of the admin of a shop, as the platform sends it to the app."""
    return _encoded(f"admin.shopify.com/store/{domain.partition('.')[0]}".encode())


def _without_implied(scopes: list[str]) -> list[str]:
    """Scopes without those that others imply: a write scope implies the read scope."""
    return [
        scope for scope in dict.fromkeys(scopes) if scope.replace("read_", "write_") not in scopes or "write_" in scope
    ]


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
