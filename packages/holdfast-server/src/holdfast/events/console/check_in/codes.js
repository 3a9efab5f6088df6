// Understands the codes of registrations as the server does: the address in a QR code, or a short code that was typed.
"use strict";
{
  const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  const TYPED = /^([1-9A-HJKMNP-TV-Z][0-9A-HJKMNP-TV-Z]{0,11})([0-9A-HJKMNP-TV-Z]{6})$/;
  const LINK = /^(?:.*\/registrations\/)?(([1-9]\d{0,17})-[a-z2-7]{8}-([1-9]\d{0,17})-[0-9a-f]{32})(?:[?#].*)?$/s;
  const ALIKE = { O: "0", I: "1", L: "1" };

  // What a text says: `{ arrival, proof, code }`; `{ isOther: true }` for another event; null if it is no code.
  // A device cannot check the signature of a link. It checks the short code that follows from the link.
  async function readCode(text, eventId) {
    const link = LINK.exec(text.trim());
    if (link) {
      if (link[2] !== eventId) return { isOther: true };
      const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(link[1]));
      const bits = new DataView(digest).getUint32(0) >>> 2;
      return named(BigInt(link[3]), written(BigInt(bits)).padStart(6, "0"));
    }
    const plain = text.replace(/[\s-]/g, "").toUpperCase().replace(/[OIL]/g, (letter) => ALIKE[letter]);
    const typed = TYPED.exec(plain);
    if (!typed) return null;
    return named([...typed[1]].reduce((number, digit) => 32n * number + BigInt(DIGITS.indexOf(digit)), 0n), typed[2]);
  }

  function named(arrival, proof) {
    return { arrival: String(arrival), proof, code: `${written(arrival)}-${proof}` };
  }

  function written(number) {
    let text = "";
    for (; number; number /= 32n) text = DIGITS[Number(number % 32n)] + text;
    return text;
  }

  globalThis.readCode = readCode;
}
