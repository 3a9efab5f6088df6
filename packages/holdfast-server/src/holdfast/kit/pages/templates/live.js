// Brings the parts of a page that are marked as live (`data-live`) up to date, without reloading it.
//
// data-stream  address of a stream. It brings the parts themselves (`numbers`), or tells what has changed (`changed`);
//              then the page fetches itself again. Without a stream, or while it is refused or broken, the page polls
// data-about   the changes that concern the page, such as `event 7`, or `event` for all events; `numbers`: the parts that
//              the stream brings are those of another page, so this one fetches itself when they come
// data-poll    seconds between two polls; 0: the page never fetches itself
// data-page    address of the page to fetch, if it is another one: a form that was refused stands at its own address
// data-prefilled  a part has fields with values that no person has typed
// data-version what the page shows beside the parts of the stream. A stream that begins with another one has been asked for
//              by a page that a cache had kept: it fetches itself
// data-state   a part with the same state stays as it is, unless the parts of the stream are those of another page
// data-count   flashes when its text changes
// data-says    where screen readers are told of changes, and people that the connection is lost
// data-lost    the sentence that says that the connection is lost
// data-tells   the text of a part that screen readers are told when it changes; by default its first paragraph
"use strict";

const POLL_MS = 2_000;
const CHECK_MS = 15_000; // between two polls beside a stream: time alone may change a page too
const REFRESH_MS = 300;
const REOPEN_MS = 30_000;
const FLASH_MS = 1_200;
const ANNOUNCE_INTERVAL_MS = 60_000;
const PRESSED_MS = 50; // between two looks whether a person still presses something
const SENDING_MS = 10_000; // after that, the answer to a form is a file, or does not come

const { stream, about = "", poll, page } = (document.querySelector("[data-stream]") ?? document.querySelector("[data-live]")).dataset;
const isOfAnotherPage = about === "numbers";
let events;
let hasEnded = false;
let bringsParts = false;
let messages = 0;
let isFetching = false;
let isStale = false;
let isSending = false; // a form of the page was sent, and the browser waits for the page that answers
let changedAt; // what a stream has told since the last fetch: a cache in front may have the page of before
let timer;
let reopening;
let fetchedAt = performance.now();
let fetchMs = 0;
let planned; // by `soon`, beside the next poll
let plannedAt = Infinity;
let announcedAt = Date.now();
const arrived = []; // the pages and parts that are not shown yet, the oldest first
let showing;

// Nothing changes while a person presses something: a control that was replaced before the button of the mouse is released
// would not be clicked, nor one that has moved.
function show(...fresh) {
  arrived.push(...fresh);
  clearTimeout(showing);
  if (document.querySelector(":active")) showing = setTimeout(show, PRESSED_MS);
  else arrived.splice(0).forEach(replaceParts);
}

function replaceParts(fresh) {
  const version = fresh.querySelector("[data-version]")?.dataset.version;
  if (version) document.querySelector("[data-version]").dataset.version = version;
  const focused = document.activeElement;
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    if (!next || !part.isConnected || isInUse(part, focused)) continue;
    if (!isOfAnotherPage && part.dataset.state && part.dataset.state === next.dataset.state) continue;
    for (const { id, open } of part.querySelectorAll("details[id]")) {
      next.querySelector(`#${CSS.escape(id)}`)?.toggleAttribute("open", open);
    }
    part.hidden = next.hidden;
    if (next.dataset.state) part.dataset.state = next.dataset.state;
    renewForms(part, next);
    if (next.innerHTML === part.innerHTML) continue;
    const toFocus = part.contains(focused) && successor(part, next, focused);
    const counts = texts(part);
    const before = toldText(part);
    for (const box of part.querySelectorAll("input[type=checkbox]:checked")) {
      successor(part, next, box)?.toggleAttribute("checked", true);
    }
    part.replaceChildren(...next.childNodes);
    if (toFocus) toFocus.focus({ preventScroll: true });
    flash(part, counts);
    // Screen readers are told the text of the part when it changes, once a minute at most.
    const after = toldText(part);
    if (after && after !== before && Date.now() - announcedAt > ANNOUNCE_INTERVAL_MS) say(after);
  }
}

// Nothing moves under the hands of a person who fills in a form.
function isInUse(part, focused) {
  const fields = "input:not([type=hidden], [type=checkbox], [type=radio]), select, textarea";
  if (part.contains(focused) && focused.matches(fields)) return true;
  const isPrefilled = "prefilled" in part.dataset;
  return [...part.querySelectorAll(fields)].some(
    (field) => field.matches("input, textarea") && field.value !== (isPrefilled ? field.defaultValue : ""),
  );
}

// Each copy of a page has other values by which a form is told from a forged one, and from one that was sent before. They
// alone are no change.
function renewForms(part, next) {
  const fields = "input[name=token], input[name=once]";
  const values = [...next.querySelectorAll(fields)].map((field) => field.value);
  part.querySelectorAll(fields).forEach((field, index) => (field.value = values[index] ?? field.value));
}

// What an element becomes in the next content of a part. If several are alike, and as many as before, it is the one at
// the same place: a button in another row is another button.
function successor(part, next, element) {
  const [before, after] = [part, next].map((content) =>
    [...content.querySelectorAll("[id], a[href], input, button, summary")].filter((one) => nameOf(one) === nameOf(element)),
  );
  return before.length === after.length ? after[before.indexOf(element)] : after.find((one) => one.href);
}

// Tells an element from others: its id, where a link leads, or the name, value and text of a control.
function nameOf(element) {
  return element.id || element.href || `${element.name ?? ""} ${element.value ?? ""} ${text(element)}`;
}

function texts(part) {
  return new Map([...part.querySelectorAll("[data-count]")].map((element) => [element.dataset.count, text(element)]));
}

function text(element) {
  return element.textContent.trim();
}

function flash(part, before) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const element of part.querySelectorAll("[data-count]")) {
    if ((before.get(element.dataset.count) ?? text(element)) === text(element)) continue;
    element.classList.add("changed");
    setTimeout(() => element.classList.remove("changed"), FLASH_MS);
  }
}

function toldText(part) {
  return (part.querySelector("[data-tells]") ?? part.querySelector("p"))?.textContent.trim();
}

function say(message) {
  const status = document.querySelector("[data-says]");
  status.textContent = message;
  status.classList.toggle("unseen", !message || message !== lost());
  announcedAt = Date.now();
}

function sayConnected() {
  if (lost() && text(document.querySelector("[data-says]")) === lost()) say("");
}

function lost() {
  return document.querySelector("[data-lost]")?.dataset.lost ?? "";
}

async function refresh() {
  stop();
  if (poll === "0" || isSending || (hasEnded && !isOfAnotherPage)) return;
  if (isFetching) {
    isStale = true;
    return;
  }
  isFetching = true;
  isStale = false;
  fetchedAt = performance.now();
  const before = messages;
  try {
    // Pages that browsers may keep are not sent again while they are the same.
    let address = page ?? location.pathname + location.search;
    if (changedAt) address += `${address.includes("?") ? "&" : "?"}at=${changedAt}`;
    changedAt = undefined;
    const answer = await fetch(address, { redirect: "manual", cache: "no-cache" });
    if (isSending) return; // to reload the page would throw away the answer to the form
    if (!page && (answer.type === "opaqueredirect" || [401, 404, 410].includes(answer.status))) {
      location.reload(); // signed out meanwhile, or deleted: the same request again, and the browser follows
      return;
    }
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const fresh = parse(await answer.text());
    sayConnected();
    if (messages === before) show(fresh); // else the stream has brought newer parts meanwhile
  } catch {
    say(lost());
  } finally {
    isFetching = false;
    fetchMs = performance.now() - fetchedAt;
  }
  if (isStale) soon();
  else schedule();
}

function parse(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  globalThis.localizeTimes?.(fresh);
  return fresh;
}

// Fetch the page when the last time is long enough ago: many changes cost one request. Where very many look at the page,
// each fetches it at a random moment of the next `spread` seconds.
function soon(spread = 0) {
  const earliest = fetchedAt + Math.max(REFRESH_MS, 2 * fetchMs);
  const at = Math.max(earliest, performance.now() + Math.random() * spread * 1_000);
  if (at > plannedAt) return;
  clearTimeout(planned);
  planned = setTimeout(refresh, Math.max(0, at - performance.now()));
  plannedAt = at;
}

function stop() {
  clearTimeout(timer);
  clearTimeout(planned);
  plannedAt = Infinity;
}

function schedule() {
  clearTimeout(timer);
  const isFollowing = events?.readyState === EventSource.OPEN;
  if (document.hidden || (isFollowing && bringsParts)) return;
  const pause = poll ? Number(poll) * 1_000 : POLL_MS;
  // A search among very many takes long. It is not asked all the time.
  timer = setTimeout(refresh, Math.max(isFollowing ? CHECK_MS : pause, 10 * fetchMs));
}

function follow() {
  clearTimeout(reopening);
  if (!stream || events || hasEnded || document.hidden) return;
  events = new EventSource(stream);
  events.addEventListener("open", () => {
    if (!bringsParts) soon(); // what has changed since the page was loaded
  });
  events.addEventListener("numbers", ({ data }) => {
    const { spread, html, version } = JSON.parse(data);
    if (isOfAnotherPage) {
      soon(spread);
      return;
    }
    // The first message has what was to be fetched when the stream opened. What is planned later concerns other parts.
    if (bringsParts) clearTimeout(timer);
    else stop();
    bringsParts = true;
    messages += 1;
    sayConnected();
    show(parse(html ?? ""));
    const main = document.querySelector("[data-version]");
    if (version && main && main.dataset.version !== version) {
      changedAt = version;
      soon(spread);
    }
  });
  events.addEventListener("changed", ({ data }) => {
    const { changed, spread, at } = JSON.parse(data);
    if (changed && !changed.some((name) => `${name} `.startsWith(about && `${about} `))) return;
    changedAt = at;
    soon(spread);
  });
  events.addEventListener("end", ({ data }) => {
    hasEnded = true;
    leave();
    if (isOfAnotherPage) soon(JSON.parse(data).spread);
  });
  events.addEventListener("signed_out", () => {
    leave();
    soon();
  });
  events.addEventListener("error", () => {
    if (events?.readyState === EventSource.CLOSED) {
      leave();
      reopening = setTimeout(follow, REOPEN_MS * (1 + Math.random()));
    }
    schedule();
  });
}

function leave() {
  stop();
  events?.close();
  events = undefined;
}

schedule();
follow();
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    clearTimeout(reopening);
    leave();
  } else if (stream && !hasEnded) {
    follow();
  } else {
    refresh();
  }
});
addEventListener("submit", ({ defaultPrevented, target }) => {
  if (defaultPrevented || target.target) return; // answered in a frame: this page stays
  isSending = true;
  setTimeout(() => {
    isSending = false;
    refresh();
  }, SENDING_MS);
});
addEventListener("offline", () => {
  leave();
  refresh();
});
addEventListener("online", () => {
  follow();
  refresh();
});
