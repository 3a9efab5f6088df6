// Checks a receipt or a proof file with WebCrypto alone. It stands inside the page `verify.html`, which has the texts.
// The formats: docs/events/fairness.md; signed notes and proof files by C2SP, trees by RFC 6962.
"use strict";

const texts = new Map();
for (const text of document.getElementById("texts").content.querySelectorAll("[data-text]")) {
  texts.set(text.dataset.text, text.textContent);
}
const say = (name, values = {}) => texts.get(name).replace(/\{(\w+)\}/g, (all, key) => values[key] ?? all);

// Why something cannot be checked, or is wrong: the name of a text, and its values.
class CheckFailure extends Error {
  constructor(text, values) {
    super(say(text, values));
  }
}

const utf8 = (text) => new TextEncoder().encode(text);
const isEqual = (one, other) => one.length === other.length && one.every((byte, index) => byte === other[index]);
const base64 = (bytes) => btoa(String.fromCharCode(...bytes));

function join(...parts) {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let start = 0;
  for (const part of parts) {
    bytes.set(part, start);
    start += part.length;
  }
  return bytes;
}

async function sha256(...parts) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", join(...parts)));
}

// The bytes of a text in base64; null if it is none.
function bytesOf(text) {
  try {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return base64(bytes) === text ? bytes : null;
  } catch {
    return null;
  }
}

// The root to which the path of a leaf leads (RFC 9162, section 2.1.3.2); null if no tree of this size has such a path.
async function rootOf(leaf, index, size, path) {
  if (!(index >= 0 && index < size)) return null;
  const half = (number) => Math.floor(number / 2);
  let [place, last, node] = [index, size - 1, leaf];
  for (const sibling of path) {
    if (last === 0 || sibling?.length !== 32) return null;
    if (place % 2 || place === last) {
      node = await sha256([1], sibling, node);
      while (place % 2 === 0 && place !== 0) [place, last] = [half(place), half(last)];
    } else {
      node = await sha256([1], node, sibling);
    }
    [place, last] = [half(place), half(last)];
  }
  return last === 0 ? node : null;
}

async function isInTree(content, index, size, root, path) {
  const hashes = path.map(bytesOf);
  const computed = await rootOf(await sha256([0], content), index, size, hashes);
  const signed = bytesOf(root);
  return Boolean(computed && signed && isEqual(computed, signed));
}

// The bytes of public keys, of lines name+id+key.
function keysOf(vkeys) {
  return vkeys.trim().split(/\s+/).map((vkey) => {
    const [, key] = /^[^\s+]+\+[0-9a-f]{8}\+(\S+)$/.exec(vkey) ?? [];
    const bytes = key && bytesOf(key);
    if (!bytes || bytes.length !== 33 || bytes[0] !== 1) throw new CheckFailure("bad-key");
    return bytes.slice(1);
  });
}

async function keysFrom(address) {
  const pasted = document.getElementById("key").value;
  if (pasted.trim()) return { keys: keysOf(pasted), origin: "given" };
  const pageKeys = document.getElementById("page-keys")?.textContent.trim();
  const [host] = pageKeys?.split("/log/promises+") ?? [];
  if (pageKeys && address.replace(/^https?:\/\//, "").startsWith(`${host}/log/`)) return { keys: keysOf(pageKeys), origin: "page" };
  try {
    const answer = await fetch(`${address}/key`);
    if (answer.ok) return { keys: keysOf(await answer.text()), origin: "fetched" };
  } catch {
    // It is not reachable from here; the page says what to do.
  }
  throw new CheckFailure("no-key", { address: `${address}/key` });
}

// The text of a signed note, if one of the keys has signed it under this name; null if not.
async function openNote(note, name, keys) {
  const end = note.lastIndexOf("\n\n");
  if (end < 0) return null;
  const text = note.slice(0, end + 1);
  const signatures = note.slice(end + 2).split("\n").map((line) => /^— (\S+) (\S+)$/.exec(line) ?? []);
  const candidates = signatures.filter(([, signer]) => signer === name).map(([, , signature]) => bytesOf(signature) ?? []);
  for (const key of keys) {
    const id = (await sha256(utf8(`${name}\n`), [1], key)).slice(0, 4);
    const signature = candidates.find((bytes) => isEqual(bytes.slice(0, 4), id));
    const imported = await importKey(key);
    if (signature && (await crypto.subtle.verify("Ed25519", imported, signature.slice(4), utf8(text)))) return text;
  }
  return null;
}

async function importKey(key) {
  try {
    return await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
  } catch {
    throw new CheckFailure("no-ed25519");
  }
}

const subjectOf = (kind, id, host) => say(kind, { id, host });
const timeOf = (text) => new Date(text).toLocaleString(document.documentElement.lang, { dateStyle: "long", timeStyle: "long" });

// Each check adds a line to `lines`, and throws where something is wrong.
async function checkReceipt(answer, lines) {
  const receipt = answer.receipt ?? answer;
  const promise = JSON.parse(receipt.promise);
  const [, host, kind, id] = /^https?:\/\/(\S+?)\/log\/(event|queue)s\/(\d+)$/.exec(promise.log);
  const path = new URL(answer.next?.url ?? "/", "https://receipt.invalid").pathname;
  const [, named] = /^\/api\/(?:registrations\/\d+|queues\/\d+\/status)\/([^/]+)$/.exec(path) ?? [];
  const person = document.getElementById("person").value.trim() || (named && decodeURIComponent(named));
  const { keys, origin } = await keysFrom(promise.log);
  const signed = await openNote(receipt.signed, `${host}/log/promises`, keys);
  const [, count, root] = /^holdfast promises v1\n\S+\n(\d+)\n(\S+)\n$/.exec(signed ?? "") ?? [];
  if (!signed || signed.split("\n")[1] !== `${host}/log/promises` || !root) throw new CheckFailure("bad-signature");
  lines.push([say(`signature-${origin}`), "done"]);
  if (!(await isInTree(utf8(receipt.promise), receipt.index ?? 0, Number(count), root, receipt.path ?? []))) {
    throw new CheckFailure("bad-promise");
  }
  lines.push([say("promise"), "done"]);
  if (person) {
    const nonce = Uint8Array.from(receipt.nonce.match(/../g), (digits) => parseInt(digits, 16));
    const hash = await sha256(utf8(`holdfast/person/v1\n${kind} ${id}\n${person}\n`), nonce);
    const expected = base64(hash).replaceAll("+", "-").replaceAll("/", "_").replace("=", "");
    if (!/^[0-9a-f]{32}$/.test(receipt.nonce) || expected !== promise.person) throw new CheckFailure("bad-commitment", { person });
    lines.push([say(kind === "event" ? "commitment" : "visitor", { person }), "done"]);
  } else {
    lines.push([say("no-person"), "unknown"]);
  }
  const number = promise.ticket ?? answer.number;
  const isKept = await checkKept(promise, number, lines);
  const values = { number, subject: subjectOf(kind, id, host), time: timeOf(promise.at) };
  return [say(isKept ? "yours" : "receipt", values), say("received", values)];
}

// Asks the log for the entry of a receipt. Returns whether it has it; throws if it breaks the promise.
async function checkKept(promise, number, lines) {
  const answer = Number.isSafeInteger(number) ? await fetch(`${promise.log}/proofs/${number}`).catch(() => null) : null;
  const isDue = Date.now() > Date.parse(promise.at) + 1000 * promise.within;
  if (answer?.status === 404 && isDue) throw new CheckFailure("not-kept", { number });
  if (!answer?.ok) {
    const reason = number === undefined ? "no-number" : answer?.status === 404 ? "not-yet" : "not-asked";
    lines.push([say(reason, { seconds: promise.within }), "unknown"]);
    return false;
  }
  const { entry, outcome } = await readProof(await answer.text(), []);
  if (entry.number !== number || entry.person !== promise.person || entry.at !== promise.at) {
    throw new CheckFailure("other-entry", { number });
  }
  lines.push([say("kept", { outcome }), "done"]);
  return true;
}

async function checkProof(text, lines) {
  const { entry, subject, outcome } = await readProof(text, lines);
  lines.push([say("whose"), "unknown"]);
  const values = { number: entry.number, subject, time: timeOf(entry.at), outcome };
  return [say("entry", values), say("arrived", values)];
}

// The entry that a proof file proves, what it is of, and what the person got.
async function readProof(text, lines) {
  const format = /^c2sp\.org\/tlog-proof@v1\nextra (\S+)\nindex (\d+)\n((?:\S+\n)*)\n([^]+)$/;
  const [, extra, index, hashes, checkpoint] = format.exec(text);
  const content = bytesOf(extra);
  const name = checkpoint.split("\n")[0];
  const [, host, kind, id] = /^(\S+?)\/log\/(event|queue)s\/(\d+)(?:\/\d+)?$/.exec(name);
  const entry = JSON.parse(new TextDecoder().decode(content));
  const isLocal = /^(localhost|127\.0\.0\.1)(:|\/)/.test(name);
  const { keys, origin } = await keysFrom(`${isLocal ? "http" : "https"}://${name}`);
  const [, size, root] = (await openNote(checkpoint, name, keys))?.split("\n") ?? [];
  if (!root) throw new CheckFailure("bad-signature");
  lines.push([say(`signature-${origin}`), "done"]);
  if (!(await isInTree(content, Number(index), Number(size), root, hashes.split("\n").slice(0, -1)))) {
    throw new CheckFailure("bad-path");
  }
  // The short form of the head that mails have.
  const head = Array.from(bytesOf(root).slice(0, 4), (byte) => byte.toString(16).padStart(2, "0")).join("");
  lines.push([say("path", { count: size, head: `${head.slice(0, 4)} ${head.slice(4)}` }), "done"]);
  const outcome = say(texts.has(entry.outcome) ? entry.outcome : "joined");
  return { entry, subject: subjectOf(kind, id, host), outcome };
}

// Checks a text. Returns what it says, in sentences. Throws a CheckFailure.
async function checkText(text, lines) {
  if (!crypto.subtle) throw new CheckFailure("no-crypto");
  try {
    if (text.startsWith("c2sp.org/tlog-proof@")) return await checkProof(text, lines);
    return await checkReceipt(JSON.parse(text), lines);
  } catch (error) {
    throw error instanceof CheckFailure ? error : new CheckFailure("unreadable");
  }
}

const copyOf = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);

function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

function rowOf([text, status]) {
  const row = document.createElement("li");
  const label = document.createElement("span");
  label.className = "soft";
  label.append(copyOf(status));
  row.append(element("span", text), label);
  return row;
}

async function showCheck(read = () => proof.value) {
  const lines = [];
  const parts = [];
  let state = "right";
  try {
    // A mail program may have added spaces around it, and line breaks of its own.
    const text = (await read()).replaceAll("\r\n", "\n");
    const [title, ...sentences] = await checkText(text.trim() + (text.trimStart().startsWith("{") ? "" : "\n"), lines);
    parts.push(copyOf("right"), element("h2", title), ...sentences.map((sentence) => element("p", sentence)));
  } catch (error) {
    state = "wrong";
    const alarm = copyOf("wrong");
    alarm.querySelector("strong").textContent = error.message;
    parts.push(alarm);
  }
  const list = document.createElement("ul");
  list.className = "rows";
  list.append(...lines.map(rowOf));
  const result = document.getElementById("result");
  result.dataset.state = state;
  result.replaceChildren(...parts, ...(lines.length ? [list] : []));
  result.scrollIntoView({ block: "nearest" });
}

const proof = document.getElementById("proof");

// A link such as /verify#/log/events/7/proofs/4211 names a proof of this site. It is fetched and checked.
async function checkLinked() {
  const path = location.hash.slice(1);
  if (!/^\/log\/(events|queues)\/\d+(\/\d+)?\/proofs\/\d+$/.test(path) || location.protocol === "file:") return;
  await showCheck(async () => {
    const answer = await fetch(path).catch(() => null);
    if (!answer?.ok) throw new CheckFailure("no-proof");
    proof.value = await answer.text();
    return proof.value;
  });
}

async function readFile(file) {
  if (!file) return;
  proof.value = await file.text();
  await showCheck();
}

document.getElementById("check").addEventListener("submit", (event) => {
  event.preventDefault();
  showCheck();
});
addEventListener("hashchange", checkLinked);
checkLinked();
document.getElementById("file").addEventListener("change", (event) => readFile(event.target.files[0]));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  readFile(event.dataTransfer.files[0]);
});
// The links at the foot lead to other pages of the site, which a saved file does not have.
addEventListener("DOMContentLoaded", () => {
  document.querySelector("footer").hidden = location.protocol === "file:";
});
