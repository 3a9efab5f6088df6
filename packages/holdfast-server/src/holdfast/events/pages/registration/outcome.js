// Shows how a registration went as soon as it is known, without reloading the page. The page does the same by itself
// where no script runs. Afterwards it follows the stream of the event (`data-stream`): what others do may move the person
// up, or cancel the event.
"use strict";

const REFRESH_MS = 300;
const PRESSED_MS = 50; // between two looks whether a person still presses something

let timer;
let planned; // by `soon`, beside the next look
let events;
let hasEnded = false;
let fetchedAt = performance.now();
let plannedAt = Infinity;

// Nothing changes while a person presses something: what was replaced before the button of the mouse is released would not
// be clicked.
async function waitUntilReleased() {
  while (document.querySelector(":active")) await new Promise((resolve) => setTimeout(resolve, PRESSED_MS));
}

function schedule(seconds) {
  clearTimeout(timer);
  if (seconds > 0) timer = setTimeout(refresh, seconds * 1000);
}

function show(fresh) {
  const main = document.querySelector("main");
  const next = fresh.querySelector("main");
  const status = main.querySelector("[role=status]");
  const news = next.querySelector("[role=status]");
  if (status && news) {
    // The same element stays, so that screen readers announce what changes in it.
    const changed = status.textContent !== news.textContent;
    const content = [...news.childNodes];
    news.replaceWith(status);
    if (changed) status.replaceChildren(...content);
  }
  for (const { id, open } of main.querySelectorAll("details[id]")) {
    next.querySelector(`#${CSS.escape(id)}`)?.toggleAttribute("open", open);
  }
  main.replaceWith(next);
}

// Look again when the last time is long enough ago: many changes cost one request. Where very many look at such pages,
// each looks again at a random moment of the next `spread` seconds.
function soon({ data }) {
  const { spread = 0 } = JSON.parse(data);
  const at = Math.max(fetchedAt + REFRESH_MS, performance.now() + Math.random() * spread * 1_000);
  if (at > plannedAt) return;
  clearTimeout(planned);
  planned = setTimeout(refresh, Math.max(0, at - performance.now()));
  plannedAt = at;
}

function follow() {
  const { stream } = document.querySelector("main").dataset;
  if (!stream || events || hasEnded || document.hidden) return;
  events = new EventSource(stream);
  events.addEventListener("numbers", soon);
  events.addEventListener("changed", soon);
  events.addEventListener("end", (event) => {
    hasEnded = true;
    leave();
    soon(event);
  });
}

function leave() {
  events?.close();
  events = undefined;
}

// Whether the person is typing another address: a newer page would take it away.
function isTyping() {
  const box = document.getElementById("address");
  return Boolean(box?.contains(document.activeElement) && box.querySelector("input"));
}

async function refresh() {
  let seconds = 5;
  clearTimeout(planned);
  plannedAt = Infinity;
  fetchedAt = performance.now();
  if (isTyping()) return schedule(seconds);
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = fresh.querySelector("main[data-state]");
    if (main) {
      await waitUntilReleased();
      show(fresh);
      seconds = Number(main.dataset.refresh);
    }
  } catch {
    const main = document.querySelector("main");
    main.querySelector("#connection").textContent = main.dataset.lost;
  }
  schedule(seconds);
  follow();
}

schedule(Number(document.querySelector("main").dataset.refresh));
follow();
document.addEventListener("visibilitychange", () => (document.hidden ? leave() : follow()));
