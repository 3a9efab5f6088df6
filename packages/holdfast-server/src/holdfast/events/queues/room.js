// Brings a waiting room up to date without reloading it. The page does the same by itself where no script runs.
//
// While we wait, the numbers are computed from our ticket and from what is the same for all who wait (`data-shared`):
// that is one answer for all visitors, which caches may keep. The page itself is fetched when it is our turn.
"use strict";

const PRESSED_MS = 50; // between two looks whether a person still presses something

let timer;
let announcedAt = Date.now();
// What is known of a visitor who waits: `shared`, `ticket` (the place in line), `joinedAt`, the highest `serving` that
// was seen, whether a draw is still to change the place, and whether the visitor came too late for it.
let place;

// Times are those of the visitor's own clock, so they name no zone.
function localize() {
  // The page is in one language. The browser may have a variant of this language that writes times in another way.
  const { lang } = document.documentElement;
  const locale = navigator.languages.find((candidate) => candidate.split("-")[0] === lang) ?? lang;
  for (const time of document.querySelectorAll("time")) {
    const moment = new Date(time.dateTime);
    const clock = { hour: "numeric", minute: "2-digit" };
    const year = moment.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
    const style = "clock" in time.dataset ? { ...clock, second: "2-digit" } : { day: "numeric", month: "long", year, ...clock };
    time.textContent = new Intl.DateTimeFormat(locale, style).format(moment);
  }
}

// Nothing changes while a person presses something: what was replaced before the button of the mouse is released would not
// be clicked.
async function waitUntilReleased() {
  while (document.querySelector(":active")) await new Promise((resolve) => setTimeout(resolve, PRESSED_MS));
}

function schedule(seconds) {
  clearTimeout(timer);
  if (seconds > 0) timer = setTimeout(refresh, seconds * 1000);
}

function tellParent() {
  const enter = document.getElementById("enter");
  if (enter && parent !== window) {
    parent.postMessage({ type: "queue.released", token: enter.dataset.token, url: enter.href }, enter.dataset.origin);
  }
}

function show(fresh) {
  const main = document.querySelector("main");
  const status = main.querySelector("[role=status]");
  const next = fresh.querySelector("main");
  const announced = next.querySelector("[role=status]");
  for (const { id, open } of main.querySelectorAll("details[id]")) {
    next.querySelector(`#${CSS.escape(id)}`)?.toggleAttribute("open", open);
  }
  main.replaceWith(next);
  if (status && announced) {
    // The same element stays, so that screen readers announce what changes in it, once a minute at most.
    announced.replaceWith(status);
    if (status.textContent !== announced.textContent && Date.now() - announcedAt > 60_000) {
      status.textContent = announced.textContent;
      announcedAt = Date.now();
    }
  }
  document.title = fresh.title;
  localize();
}

function remember() {
  const { shared, ticket, waited, draws = "", late = "" } = document.querySelector("main").dataset;
  place = shared && { shared, ticket: Number(ticket), joinedAt: Date.now() - waited * 1000, serving: 0, draws, late };
}

function parse(html) {
  return new DOMParser().parseFromString(html, "text/html");
}

// The page as it would be for us, made from what is the same for all. Undefined when only the page itself says more.
async function fetchShared() {
  const html = await (await fetch(place.shared, { credentials: "omit" })).text();
  const { state, serving, tickets, pace, start, draws = "" } = parse(html).querySelector("main").dataset;
  if (state === "gone") return parse(html);
  if (draws !== place.draws) return undefined;
  // A cache may be a moment behind another one. No position rises.
  place.serving = Math.max(place.serving, Number(serving));
  const position = place.ticket - place.serving;
  if (!(position > 0)) return undefined;
  if (state === "ended") return parse(html);
  const wait = Number(start) + Math.ceil(position * pace);
  const waited = Math.max(0, Date.now() - place.joinedAt) / 1000;
  const number = new Intl.NumberFormat(document.documentElement.lang);
  const values = {
    position: number.format(position),
    behind: number.format(Math.max(0, tickets - place.ticket)),
    wait: inWords(wait),
    number: number.format(place.ticket),
    ticket: place.ticket,
    progress: Math.min(99, Math.max(1, Math.floor((100 * waited) / Math.max(1, waited + wait)))),
  };
  const fresh = parse(html.replace(/\{(position|behind|wait|progress|number|ticket)\}/g, (_, name) => values[name]));
  const main = fresh.querySelector("main");
  main.querySelector("#position")?.classList.toggle("long", position > 99_999);
  for (const note of main.querySelectorAll("[data-late]")) note.hidden = note.dataset.late !== place.late;
  const soon = main.querySelector("[data-soon]");
  if (soon && wait < 10) soon.textContent = soon.dataset.soon;
  const late = main.querySelector("[data-ends]");
  if (late) late.hidden = Date.parse(late.dataset.ends) >= Date.now() + wait * 1000;
  main.dataset.refresh = pause(draws ? Math.max(wait, 300) : state === "paused" ? Math.max(wait, 30) : wait);
  return fresh;
}

// Seconds until the next fetch: more for a longer wait, and varied so that pages do not come together.
function pause(wait) {
  const [, rest] = [[900, 60], [300, 30], [60, 15], [0, 5]].find(([least]) => wait >= least);
  return Math.max(2, Math.min(wait, rest * (0.85 + 0.3 * Math.random())));
}

// A wait in words, rounded up. `formatToParts` says "in 3 days": what follows "in" also follows "within".
function inWords(seconds) {
  const { lang } = document.documentElement;
  const format = new Intl.RelativeTimeFormat(lang);
  const amount = (count, unit) => {
    const parts = format.formatToParts(count, unit);
    return parts.slice(parts.findIndex(({ type }) => type === "integer")).map(({ value }) => value).join("");
  };
  const minutes = Math.max(1, Math.ceil(seconds / 60));
  if (minutes < 60) return amount(minutes, "minute");
  const fives = Math.ceil(minutes / 5) * 5;
  const hours = Math.ceil(seconds / 3600);
  const [large, small] =
    fives < 1440
      ? [[Math.floor(fives / 60), "hour"], [fives % 60, "minute"]]
      : [[Math.floor(hours / 24), "day"], [hours % 24, "hour"]];
  const words = [large, small].filter(([count]) => count).map(([count, unit]) => amount(count, unit));
  return new Intl.ListFormat(lang).format(words);
}

async function fetchOwn() {
  const answer = await fetch(location.pathname + location.search, { redirect: "manual", cache: "no-store" });
  if (answer.type !== "opaqueredirect") return parse(await answer.text());
  location.reload(); // it is our turn: the same request again, and the browser follows
  return undefined;
}

async function refresh() {
  clearTimeout(timer);
  let seconds = 10;
  try {
    const shared = place && (await fetchShared());
    const fresh = shared ?? (await fetchOwn());
    if (!fresh) return;
    const main = fresh.querySelector("main[data-state]");
    if (main) {
      await waitUntilReleased();
      show(fresh);
      if (!shared) remember();
      seconds = Number(main.dataset.refresh);
      if (main.dataset.state === "released") tellParent();
    }
  } catch {
    const main = document.querySelector("main");
    const soft = main.querySelector(":scope > .soft:last-of-type");
    if (soft) soft.textContent = main.dataset.lost;
  }
  schedule(seconds);
}

remember();
localize();
tellParent();
schedule(Number(document.querySelector("main").dataset.refresh));
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && document.querySelector("main").dataset.refresh) refresh();
});
