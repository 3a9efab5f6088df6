// Reads what the logs of an event or a queue say of one person after the arrival, up to their ends. It stands inside the
// page `verify.html`, before `verify.js`. Every entry that it reads is proved to be in the signed log.
"use strict";

const BUNDLE_SIZE = 256;
const MAX_CONCURRENT_BUNDLES = 6;
// A browser computes the hashes of so many in a few seconds.
const MAX_ENTRIES_READ = 50_000;

// A Merkle tree that grows: the roots of its perfect subtrees, the largest first.
class Tree {
  constructor(size = 0, roots = []) {
    this.size = size;
    this.roots = [...roots];
  }

  async add(leaf) {
    let node = leaf;
    for (let count = this.size; count % 2; count = Math.floor(count / 2)) node = await sha256([1], this.roots.pop(), node);
    this.roots.push(node);
    this.size += 1;
  }

  async root() {
    let node = this.roots.at(-1);
    for (const left of this.roots.slice(0, -1).reverse()) node = await sha256([1], left, node);
    return node;
  }
}

const leafOf = (content) => sha256([0], content);

// The path of a bundle of entries, as C2SP's tlog-tiles has it.
function bundlePath(number, width) {
  const groups = number.toLocaleString("en").split(",").map((group) => group.padStart(3, "0"));
  const path = groups.map((group, place) => (place < groups.length - 1 ? `x${group}` : group)).join("/");
  return `tile/entries/${path}${width < BUNDLE_SIZE ? `.p/${width}` : ""}`;
}

// The entries of a bundle, each as bytes; null if it cannot be had.
async function fetchBundle(address, number, width) {
  const answer = await fetch(`${address}/${bundlePath(number, width)}`).catch(() => null);
  if (!answer?.ok) return null;
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const entries = [];
  for (let start = 0; start + 2 <= bytes.length && entries.length < width; ) {
    const end = start + 2 + bytes[start] * 256 + bytes[start + 1];
    entries.push(bytes.slice(start + 2, end));
    start = end;
  }
  if (entries.length < width) throw new CheckFailure("other-entries");
  return entries;
}

// The signed head at the address of a log whose name begins so: its generation, size and root; null if it cannot be had.
async function fetchHead(address, name, keys) {
  const answer = await fetch(`${address}/checkpoint`).catch(() => null);
  if (!answer?.ok) return null;
  const note = await answer.text();
  const origin = note.split("\n")[0];
  const generation = generationOf(origin, name);
  const [, size, root] = (await openNote(note, origin, keys))?.split("\n") ?? [];
  if (!root) throw new CheckFailure("bad-signature");
  return { generation, size: Number(size), root: bytesOf(root) };
}

// The generation of a log by what it calls itself. Throws a CheckFailure if it is not the log with this name.
function generationOf(origin, name) {
  if (origin === name) return 1;
  const [, generation] = /^\/([1-9]\d{0,8})$/.exec(origin.slice(name.length)) ?? [];
  if (!origin.startsWith(name) || !generation) throw new CheckFailure("other-log", { name: origin });
  return Number(generation);
}

// Reads the entries that a tree does not have yet, up to a signed head, and visits each. False: some cannot be had.
// Throws a CheckFailure unless they lead to the head, and, where the tree grows past it, to an earlier head.
async function readEntries(address, head, tree, visit, earlier = null) {
  const numbers = [];
  for (let number = Math.floor(tree.size / BUNDLE_SIZE); number * BUNDLE_SIZE < head.size; number += 1) numbers.push(number);
  while (numbers.length) {
    const next = numbers.splice(0, MAX_CONCURRENT_BUNDLES);
    const width = (number) => Math.min(BUNDLE_SIZE, head.size - number * BUNDLE_SIZE);
    const bundles = await Promise.all(next.map((number) => fetchBundle(address, number, width(number))));
    if (bundles.includes(null)) return false;
    for (const [place, bundle] of bundles.entries()) {
      const contents = bundle.slice(Math.max(tree.size - next[place] * BUNDLE_SIZE, 0));
      for (const [offset, leaf] of (await Promise.all(contents.map(leafOf))).entries()) {
        await tree.add(leaf);
        if (tree.size === earlier?.size && !isEqual(await tree.root(), earlier.root)) throw new CheckFailure("rewritten");
        visit(parseEntry(contents[offset]), tree.size - 1);
      }
    }
  }
  if (!isEqual(await tree.root(), head.root)) throw new CheckFailure("other-entries");
  return true;
}

function parseEntry(content) {
  try {
    return JSON.parse(new TextDecoder().decode(content));
  } catch {
    throw new CheckFailure("other-entries");
  }
}

// What the logs say of one person.
class History {
  // person: the commitment. arrival, index: the entry of the arrival, if it is known already.
  constructor(kind, person, generation = 1, arrival = null, index = null) {
    Object.assign(this, { kind, person, generation, arrival, index });
    this.changes = [];
    this.isDrawn = false;
    this.isLost = false;
    this.cancelledAt = this.closedAt = this.letInAt = null;
    this.gaps = [];
  }

  get number() {
    return this.arrival?.number;
  }

  // What the person has at the end of what was read.
  get status() {
    const first = this.arrival?.outcome ?? (this.kind === "event" ? "in_draw" : "joined");
    return this.changes.at(-1)?.after ?? first;
  }

  visit(entry, generation, index) {
    const step = { generation, index, at: entry.at, receivedAt: entry.received_at, before: this.status };
    const add = (by, after) => this.changes.push({ ...step, by, after });
    if (entry.kind === "open") this.begin(entry, generation);
    else if (entry.kind === "arrival" && entry.person === this.person) Object.assign(this, { arrival: entry, generation, index });
    else if (entry.kind === "change" && entry.person === this.person && entry.to) add(entry.by, entry.to);
    else if (entry.kind === "change" && entry.event === "cancelled") this.cancelledAt = entry.at;
    else if (entry.kind === "draw") this.isDrawn = true;
    else if (entry.kind === "close") this.closedAt = entry.at;
    else if (this.number === undefined) return;
    else if (entry.kind === "change" && entry.number === this.number && entry.to) add(entry.by, entry.to);
    else if (entry.kind === "place" && entry.number === this.number) add(this.isDrawn ? "draw" : "service", entry.outcome);
    else if (entry.kind === "release" && !this.isDrawn && entry.from <= this.number && this.number <= entry.to) this.letInAt = entry.at;
  }

  // A further log begins. After a restored backup, it does not have what the log before it had after the backup.
  begin(entry, generation) {
    const isKept = (step) => !entry.after || step.generation < generation - 1 || step.index < entry.after.size;
    if (generation > 1 && !entry.after && this.closedAt) this.gaps.push({ from: this.closedAt, to: entry.at });
    this.closedAt = null;
    this.changes = this.changes.filter(isKept);
    if (this.arrival && this.generation < generation) this.isLost ||= !isKept(this) || entry.first_number <= this.number;
  }
}

// Reads the logs at an address from a start, or from the first one on. Returns why not all could be read, as the name of a
// text; null: all were read.
async function readHistory({ address, name, keys }, history, start = null) {
  const newest = await fetchHead(address, name, keys);
  if (!newest) return "later-unread";
  let count = 0;
  for (let generation = start?.generation ?? 1; generation <= newest.generation; generation += 1) {
    const isStart = generation === start?.generation;
    const below = `${address}/${generation}`;
    const head = isStart ? start.head : generation === newest.generation ? newest : await fetchHead(below, name, keys);
    if (!head) return "later-unread";
    const tree = isStart ? start.tree : new Tree();
    count += head.size - tree.size;
    if (count > MAX_ENTRIES_READ) return "later-long";
    const visit = (entry, index) => history.visit(entry, generation, index);
    if (!(await readEntries(below, head, tree, visit, isStart ? start.earlier : null))) return "later-unread";
  }
  return null;
}
