// Checks a receipt or a proof file with WebCrypto alone. It stands inside the page `verify.html`, which has the texts, after
// `verify_history.js`.
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

// The root to which the path of a leaf leads (RFC 9162, section 2.1.3.2), and the siblings on its left, the largest first;
// null if no tree of this size has such a path.
async function followPath(leaf, index, size, path) {
  if (!(index >= 0 && index < size)) return null;
  const half = (number) => Math.floor(number / 2);
  const left = [];
  let [place, last, node] = [index, size - 1, leaf];
  for (const sibling of path) {
    if (last === 0 || sibling?.length !== 32) return null;
    if (place % 2 || place === last) {
      left.unshift(sibling);
      node = await sha256([1], sibling, node);
      while (place % 2 === 0 && place !== 0) [place, last] = [half(place), half(last)];
    } else {
      node = await sha256([1], node, sibling);
    }
    [place, last] = [half(place), half(last)];
  }
  return last === 0 ? { root: node, left } : null;
}

// The path of a content to a root in base64; null if it does not lead there.
async function pathTo(root, content, index, size, path) {
  const followed = await followPath(await leafOf(content), index, size, path.map(bytesOf));
  const signed = bytesOf(root);
  return followed && signed && isEqual(followed.root, signed) ? followed : null;
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

const language = document.documentElement.lang;
const subjectOf = (kind, id, host) => say(kind, { id, host });
const timeOf = (text) => new Date(text).toLocaleString(language, { dateStyle: "long", timeStyle: "long" });
const countOf = (number) => number.toLocaleString(language);
const wordFor = (kind, name, other) => say(texts.has(`${kind}-${name}`) ? `${kind}-${name}` : `${kind}-${other}`);

// What was checked, and what not. `state`: right; partly, if something about this person was not checked; attention, if
// all that was checked is right, but the person should look at it.
class Report {
  state = "right";
  title = "";
  sentences = [];
  notes = [];
  lines = [];
  unchecked = [];

  say(text, values) {
    this.sentences.push(say(text, values));
  }

  check(text, values) {
    this.lines.push(say(text, values));
  }

  leave(text, values) {
    if (this.state === "right") this.state = "partly";
    this.unchecked.push(say(text, values));
  }

  note(text, values) {
    this.state = "attention";
    this.notes.push(say(text, values));
  }

  // What a page can never check, at the end.
  end(keyOrigin) {
    this.unchecked.push(say("others"), say("same-log"));
    if (keyOrigin !== "given") this.unchecked.push(say("own-key"));
  }
}

// A link such as /verify#/log/events/7/proofs/4211?shown=waitlisted names a proof of this site, and what the page with the
// link shows of the registration; null: there is none.
function readLink() {
  const format = /^(\/log\/(event|queue)s\/(\d+))(?:\/\d+)?\/proofs\/(\d+)(?:\?shown=(\w+))?$/;
  const [text, path, kind, id, number, shown] = format.exec(location.hash.slice(1)) ?? [];
  return text ? { proof: text.split("?")[0], path, kind, id, number: Number(number), shown } : null;
}

async function checkReceipt(answer, report) {
  const receipt = answer.receipt ?? answer;
  const promise = JSON.parse(receipt.promise);
  const [, name, host, kind, id] = /^https?:\/\/((\S+?)\/log\/(event|queue)s\/(\d+))$/.exec(promise.log);
  const path = new URL(answer.next?.url ?? "/", "https://receipt.invalid").pathname;
  const [, named] = /^\/api\/(?:registrations\/\d+|queues\/\d+\/status)\/([^/]+)$/.exec(path) ?? [];
  const person = document.getElementById("person").value.trim() || (named && decodeURIComponent(named));
  const { keys, origin } = await keysFrom(promise.log);
  const signed = await openNote(receipt.signed, `${host}/log/promises`, keys);
  const [, count, root] = /^holdfast promises v1\n\S+\n(\d+)\n(\S+)\n$/.exec(signed ?? "") ?? [];
  if (!signed || signed.split("\n")[1] !== `${host}/log/promises` || !root) throw new CheckFailure("bad-signature");
  report.check(`signature-${origin}`);
  if (!(await pathTo(root, utf8(receipt.promise), receipt.index ?? 0, Number(count), receipt.path ?? []))) {
    throw new CheckFailure("bad-promise");
  }
  report.check("promise");
  if (person) {
    const nonce = Uint8Array.from(receipt.nonce.match(/../g), (digits) => parseInt(digits, 16));
    const hash = await sha256(utf8(`holdfast/person/v1\n${kind} ${id}\n${person}\n`), nonce);
    const expected = base64(hash).replaceAll("+", "-").replaceAll("/", "_").replace("=", "");
    if (!/^[0-9a-f]{32}$/.test(receipt.nonce) || expected !== promise.person) throw new CheckFailure("bad-commitment", { person });
    report.check(kind === "event" ? "commitment" : "visitor", { person });
  } else {
    report.leave("no-person");
  }
  const log = { address: promise.log, name, kind, id, keys };
  const history = await followPromise(log, promise, promise.ticket ?? answer.number, report);
  const values = { number: history?.number, subject: subjectOf(kind, id, host), time: timeOf(promise.at) };
  const isYours = person && history?.number !== undefined;
  report.title = say(!isYours ? "receipt" : history.status === "removed" ? "was-yours" : "yours", values);
  report.sentences.unshift(say("received", values));
  report.end(origin);
}

// Looks into the log for what a receipt promises, and reads on from there. Returns the history; null if the log cannot be
// asked, or does not have it yet. Throws a CheckFailure if the promise is broken.
async function followPromise(log, promise, number, report) {
  const isDue = Date.now() > Date.parse(promise.at) + 1000 * promise.within;
  const values = { seconds: promise.within, number, count: countOf(MAX_ENTRIES_READ) };
  let history = new History(log.kind, promise.person);
  let missing;
  if (Number.isSafeInteger(number)) {
    const answer = await fetch(`${log.address}/proofs/${number}`).catch(() => null);
    const isMissing = answer?.status === 404 && isDue;
    if (!answer?.ok && !isMissing) {
      report.leave(answer?.status === 404 ? "not-yet" : "not-asked", values);
      return null;
    }
    const proof = isMissing ? null : await readProof(await answer.text(), log);
    const entry = proof?.entry;
    if (entry?.number === number && entry.person === promise.person && entry.at === promise.at) {
      history = new History(log.kind, promise.person, proof.generation, entry, proof.index);
      missing = await readHistory(log, history, proof);
    } else {
      // After a restored backup, the number may be another person's. Then an earlier log has the promise.
      missing = await readHistory(log, history);
      if (!history.isLost) throw new CheckFailure(isMissing ? "not-kept" : "other-entry", values);
    }
  } else {
    missing = await readHistory(log, history);
    const at = history.arrival?.at ?? history.changes[0]?.receivedAt;
    if (at === undefined && !missing && isDue) throw new CheckFailure("not-kept-at-all");
    if (at === undefined) {
      report.leave(missing === "later-long" ? "no-number" : missing ? "not-asked" : "not-yet", values);
      return null;
    }
    if (at !== promise.at) throw new CheckFailure("other-time", { time: timeOf(at) });
  }
  if (!history.isLost) report.check("kept");
  tell(history, missing, report, true);
  compareShown(history, missing, log, report);
  return history;
}

// Says what became of a person. missing: why not all was read, as the name of a text; null: all was.
function tell(history, missing, report, isReceipt) {
  for (const { at, by, before, after } of history.changes.filter((change) => change.after !== "removed")) {
    const values = { before: wordFor("status", before, "removed"), after: wordFor("status", after, "removed") };
    report.say("changed", { time: timeOf(at), actor: wordFor("by", by, "service"), ...values });
  }
  if (history.cancelledAt) report.say("event-cancelled", { time: timeOf(history.cancelledAt) });
  if (history.letInAt) report.say("let-in", { time: timeOf(history.letInAt) });
  const last = history.changes.at(-1);
  const values = { number: history.number, status: wordFor("status", history.status, "removed") };
  if (history.isLost) {
    report.note("lost");
  } else if (last?.after === "removed") {
    const actor = ["person", "organizer"].includes(last.by) ? last.by : "service";
    report.note(`removed-${actor}${isReceipt && actor === "person" ? "-you" : ""}`, { time: timeOf(last.at) });
  } else if (missing) {
    report.say("got", values);
  } else if (history.closedAt) {
    report.say("had", { ...values, time: timeOf(history.closedAt) });
  } else {
    report.say("now", values);
  }
  if (missing) report.leave(missing, { count: countOf(MAX_ENTRIES_READ) });
  if (history.closedAt) report.leave("closed", { time: timeOf(history.closedAt) });
  for (const { from, to } of history.gaps) report.leave("gap", { from: timeOf(from), to: timeOf(to) });
  if (history.kind === "queue" && history.isDrawn) report.leave("drawn-place");
}

// Compares the history with what the page shows that linked here.
function compareShown(history, missing, log, report) {
  if (log.kind === "queue" || history.number === undefined || missing || history.isLost) return;
  const link = readLink();
  const isLinked = link?.shown && link.number === history.number && log.name.endsWith(link.path);
  if (!isLinked) {
    report.unchecked.push(say("not-shown"));
    return;
  }
  const values = { shown: wordFor("status", link.shown, "removed"), status: wordFor("status", history.status, "removed") };
  if (link.shown === history.status) report.check("shown-same", values);
  else report.note("shown-differs", values);
}

// link: the link whose proof it is; null: it is from a file
async function checkProof(text, report, link) {
  const proof = await readProof(text, null, link);
  const { entry, log } = proof;
  report.check(`signature-${proof.keyOrigin}`);
  report.check("path", { count: countOf(proof.head.size) });
  report.leave("whose");
  const history = new History(log.kind, entry.person, proof.generation, entry, proof.index);
  const missing = await readSince(proof, history, link !== null);
  tell(history, missing, report, false);
  compareShown(history, missing, log, report);
  const values = { number: entry.number, subject: proof.subject, time: timeOf(entry.at) };
  report.title = say("entry", values);
  report.sentences.unshift(say("arrived", values));
  report.end(proof.keyOrigin);
}

// Reads what came after the arrival of a proof. The head of a file may be old: then the log of now must begin with it.
async function readSince(proof, history, isNew) {
  const { log, entry } = proof;
  if (isNew) return await readHistory(log, history, proof);
  const answer = await fetch(`${log.address}/proofs/${entry.number}`).catch(() => null);
  if (!answer?.ok) return "later-unread";
  const now = await readProof(await answer.text(), log);
  if (now.generation > proof.generation) {
    history.isLost = true;
    return null;
  }
  if (now.index !== proof.index || !isEqual(now.content, proof.content)) throw new CheckFailure("rewritten");
  if (now.head.size < proof.head.size) {
    throw new CheckFailure("shorter", { before: countOf(proof.head.size), count: countOf(now.head.size) });
  }
  return await readHistory(log, history, { ...now, earlier: proof.head });
}

// What a proof file proves: an arrival in a log, and the tree up to it. With the log or the link that it must be of.
async function readProof(text, expected = null, link = null) {
  const format = /^c2sp\.org\/tlog-proof@v1\nextra (\S+)\nindex (\d+)\n((?:\S+\n)*)\n([^]+)$/;
  const [, extra, index, hashes, checkpoint] = format.exec(text);
  const content = bytesOf(extra);
  const origin = checkpoint.split("\n")[0];
  const [, name, host, kind, id] = /^((\S+?)\/log\/(event|queue)s\/(\d+))(?:\/\d+)?$/.exec(origin);
  if (link && (link.kind !== kind || link.id !== id)) throw new CheckFailure("other-log", { name: origin });
  const generation = generationOf(origin, expected?.name ?? name);
  const isLocal = /^(localhost|127\.0\.0\.1)(:|\/)/.test(name);
  const address = expected?.address ?? `${isLocal ? "http" : "https"}://${name}`;
  const { keys, origin: keyOrigin } = expected ? { keys: expected.keys } : await keysFrom(address);
  const [, size, root] = (await openNote(checkpoint, origin, keys))?.split("\n") ?? [];
  if (!root) throw new CheckFailure("bad-signature");
  const path = await pathTo(root, content, Number(index), Number(size), hashes.split("\n").slice(0, -1));
  if (!path) throw new CheckFailure("bad-path");
  const entry = parseEntry(content);
  if (entry.kind !== "arrival") throw new CheckFailure("no-arrival");
  if (link && link.number !== entry.number) throw new CheckFailure("other-log", { name: origin });
  const tree = new Tree(Number(index), path.left);
  await tree.add(await leafOf(content));
  const log = { address, name, kind, id, keys };
  const head = { size: Number(size), root: bytesOf(root) };
  return { log, generation, entry, content, index: Number(index), head, tree, keyOrigin, subject: subjectOf(kind, id, host) };
}

// Checks a text. Throws a CheckFailure.
async function checkText(text, report, link) {
  if (!crypto.subtle) throw new CheckFailure("no-crypto");
  try {
    if (text.startsWith("c2sp.org/tlog-proof@")) await checkProof(text, report, link);
    else await checkReceipt(JSON.parse(text), report);
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

function listOf(className, texts, mark) {
  const list = document.createElement("ul");
  list.className = className;
  for (const text of texts) {
    const row = element("li", "");
    row.append(element("span", text));
    if (mark) {
      const label = element("span", "");
      label.className = "soft";
      label.append(copyOf(mark));
      row.append(label);
    }
    list.append(row);
  }
  return list;
}

function noteOf(text) {
  const note = copyOf("note");
  note.querySelector("strong").textContent = text;
  return note;
}

// The result in a sentence, and behind it all that was checked.
function partsOf(report, failure) {
  const checked = report.lines.length ? [listOf("rows", report.lines, "done")] : [];
  const unchecked = failure ? [] : [element("h3", say("unchecked")), listOf("", report.unchecked)];
  const details = element("details", "");
  details.append(element("summary", say("checked")), ...checked, ...unchecked);
  if (failure) {
    const alarm = copyOf("wrong");
    alarm.querySelector("strong").textContent = failure.message;
    return [alarm, ...(checked.length ? [details] : [])];
  }
  return [
    copyOf(report.state),
    element("h2", report.title),
    ...(report.state === "partly" ? [element("p", say("partly"))] : []),
    ...report.sentences.map((sentence) => element("p", sentence)),
    ...report.notes.map(noteOf),
    details,
  ];
}

function showParts(state, parts) {
  const result = document.getElementById("result");
  result.dataset.state = state;
  result.replaceChildren(...parts);
  result.scrollIntoView({ block: "nearest" });
}

// link: the link whose proof it is; null: it was typed or chosen
async function showCheck(read = () => proof.value, link = null) {
  showParts("reading", [element("p", say("reading"))]);
  const report = new Report();
  let failure = null;
  try {
    // A mail program may have added spaces around it, and line breaks of its own.
    const text = (await read()).replaceAll("\r\n", "\n");
    await checkText(text.trim() + (text.trimStart().startsWith("{") ? "" : "\n"), report, link);
  } catch (error) {
    failure = error;
  }
  showParts(failure ? "wrong" : report.state, partsOf(report, failure));
}

const proof = document.getElementById("proof");

async function checkLinked() {
  const link = readLink();
  if (!link || location.protocol === "file:") return;
  await showCheck(async () => {
    const answer = await fetch(link.proof).catch(() => null);
    if (!answer?.ok) throw new CheckFailure("no-proof");
    proof.value = await answer.text();
    return proof.value;
  }, link);
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
