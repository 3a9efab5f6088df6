// A door behind a Holdfast waiting room: lets in whoever was released, and asks nobody else about it.
// Copy this file into your site. It needs Node 18 or newer, and nothing else.

import { createPublicKey, verify } from "node:crypto";

const LEEWAY = 10; // seconds by which clocks may differ
const REMEMBERED = 300; // seconds the published keys are kept

export class QueueDoor {
  #keys = new Map();
  #fetchedAt = 0;
  #used = new Map();

  /**
   * baseUrl    the address of Holdfast, without a slash at the end
   * queueId    the queue in front of this site
   * failOpen   whether to let everybody in while the keys cannot be fetched; if not, nobody is
   */
  constructor(baseUrl, queueId, { failOpen = false } = {}) {
    this.baseUrl = baseUrl;
    this.audience = `queue:${queueId}`;
    this.failOpen = failOpen;
  }

  /** The id of the visitor a token lets in, the first time it is shown; null for a token that lets nobody in. */
  async visitor(token) {
    let head, claims, key;
    const parts = token.split(".");
    try {
      [head, claims] = parts.slice(0, 2).map((part) => JSON.parse(Buffer.from(part, "base64url").toString()));
    } catch {
      return null;
    }
    if (parts.length !== 3 || head?.alg !== "RS256" || head.typ !== "queue-release+jwt" || head.crit) return null;
    try {
      key = await this.#key(head.kid);
    } catch {
      return this.failOpen ? "unverified" : null;
    }
    const signed = Buffer.from(`${parts[0]}.${parts[1]}`);
    if (!key || !verify("RSA-SHA256", signed, key, Buffer.from(parts[2], "base64url"))) return null;
    const now = Date.now() / 1000;
    if (claims.iss !== this.baseUrl || ![].concat(claims.aud).includes(this.audience)) return null;
    if (!(claims.exp + LEEWAY > now) || !(claims.iat - LEEWAY <= now) || !claims.sub || !claims.jti) return null;
    return this.#isFirst(claims.jti, claims.exp, now) ? claims.sub : null;
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
