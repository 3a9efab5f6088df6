// A door behind a Holdfast waiting room: lets released visitors in. It checks their tokens offline.
// Copy this file into your site. It needs Node 18 or newer, and nothing else.

import { createPublicKey, verify } from "node:crypto";

const LEEWAY = 10; // seconds by which clocks may differ
const REMEMBERED = 300; // seconds the published keys are kept

/**
 * The token is refused: send the visitor to the waiting room.
 *
 * reason    "missing"
 *           "signature": forged, damaged, or not a release token
 *           "audience": for another queue, or of a Holdfast with another address
 *           "expired"
 *           "early": not valid yet; compare the clocks of both machines
 *           "used": this process has let a visitor in with it before
 *           "unavailable": the keys cannot be fetched
 */
export class TokenRefusal extends Error {
  constructor(reason) {
    super(`The token is refused: ${reason}.`);
    this.reason = reason;
  }
}

export class QueueDoor {
  #keys = new Map();
  #fetchedAt = 0;
  #used = new Map();

  /**
   * baseUrl    the address of Holdfast, without a slash at the end
   * queueId    the queue in front of this site
   * failOpen   whether to let all visitors in while the keys cannot be fetched; if not, none is
   */
  constructor(baseUrl, queueId, { failOpen = false } = {}) {
    this.baseUrl = baseUrl;
    this.audience = `queue:${queueId}`;
    this.failOpen = failOpen;
  }

  /**
   * The id of the visitor whom a token lets in, the first time it is shown. Throws `TokenRefusal`.
   *
   * With `failOpen`, the id is "unverified" while the keys cannot be fetched.
   */
  async visitor(token) {
    if (!token) throw new TokenRefusal("missing");
    let head, claims, key;
    const parts = token.split(".");
    try {
      [head, claims] = parts.slice(0, 2).map((part) => JSON.parse(Buffer.from(part, "base64url").toString()));
    } catch {
      throw new TokenRefusal("signature");
    }
    const isRelease = parts.length === 3 && head?.alg === "RS256" && head.typ === "queue-release+jwt" && !head.crit;
    if (!isRelease) throw new TokenRefusal("signature");
    try {
      key = await this.#key(head.kid);
    } catch {
      if (this.failOpen) return "unverified";
      throw new TokenRefusal("unavailable");
    }
    const signed = Buffer.from(`${parts[0]}.${parts[1]}`);
    const isSigned = key && verify("RSA-SHA256", signed, key, Buffer.from(parts[2], "base64url"));
    if (!isSigned || !claims.sub || !claims.jti) throw new TokenRefusal("signature");
    const now = Date.now() / 1000;
    if (!(claims.iat - LEEWAY <= now)) throw new TokenRefusal("early");
    if (!(claims.exp + LEEWAY > now)) throw new TokenRefusal("expired");
    const isOurs = claims.iss === this.baseUrl && [].concat(claims.aud).includes(this.audience);
    if (!isOurs) throw new TokenRefusal("audience");
    if (!this.#isFirst(claims.jti, claims.exp, now)) throw new TokenRefusal("used");
    return claims.sub;
  }

  /** Whether this process sees a token for the first time; remembered until the token has expired. */
  #isFirst(id, expiresAt, now) {
    for (const [known, end] of this.#used) if (end + LEEWAY <= now) this.#used.delete(known);
    return !this.#used.has(id) && this.#used.set(id, expiresAt) !== null;
  }

  /** A published key. A new one is looked for at most once a second. */
  async #key(id) {
    const age = Date.now() / 1000 - this.#fetchedAt;
    if (age > REMEMBERED || (!this.#keys.has(id) && age > 1)) {
      const answer = await fetch(`${this.baseUrl}/.well-known/queue-jwks.json`, { signal: AbortSignal.timeout(3000) });
      if (!answer.ok) throw new Error(`The keys cannot be fetched: ${answer.status}`);
      const { keys } = await answer.json();
      this.#keys = new Map(keys.map((jwk) => [jwk.kid, createPublicKey({ key: jwk, format: "jwk" })]));
      this.#fetchedAt = Date.now() / 1000;
    }
    return this.#keys.get(id);
  }
}
