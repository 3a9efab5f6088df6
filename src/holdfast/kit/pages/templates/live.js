// Brings the parts of a page that are marked as live up to date, without reloading it.
"use strict";

const POLL_MS = 2_000;
const ANNOUNCE_INTERVAL_MS = 60_000;
let timer;
let announcedAt = Date.now();

function show(fresh) {
  const focused = document.activeElement;
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    const hadFocus = part.contains(focused);
    // Nothing moves under the hands of somebody who fills in a form.
    if (!next || (hadFocus && focused.matches("input, select, textarea"))) continue;
    for (const { id, open } of part.querySelectorAll("details[id]")) {
      next.querySelector(`#${id}`)?.toggleAttribute("open", open);
    }
    if (next.innerHTML === part.innerHTML) continue;
    const before = part.querySelector("p")?.textContent;
    part.replaceChildren(...next.childNodes);
    if (hadFocus) same(part, focused)?.focus({ preventScroll: true });
    // Screen readers are told the first paragraph of the part when it changes, once a minute at most.
    const after = part.querySelector("p")?.textContent;
    if (after && after !== before && Date.now() - announcedAt > ANNOUNCE_INTERVAL_MS) say(after);
  }
}

// What an element has become: found by its id, a link by where it leads.
function same(part, gone) {
  const alike = (element) => (gone.id ? element.id === gone.id : gone.href && element.href === gone.href);
  return [...part.querySelectorAll("[id], a[href]")].find(alike);
}

function say(text) {
  const status = document.querySelector("[data-says]");
  status.textContent = text;
  status.classList.toggle("unseen", text !== lost());
  announcedAt = Date.now();
}

function lost() {
  return document.querySelector("[data-live]").dataset.lost;
}

async function refresh() {
  clearTimeout(timer);
  const began = performance.now();
  try {
    const answer = await fetch(location.pathname + location.search, { redirect: "manual", cache: "no-store" });
    if (answer.type === "opaqueredirect" || answer.status === 401 || answer.status === 404) {
      location.reload(); // signed out meanwhile, or deleted: the same request again, and the browser follows
      return;
    }
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    globalThis.localizeTimes?.(fresh);
    if (document.querySelector("[data-says]").textContent === lost()) say("");
    show(fresh);
  } catch {
    say(lost());
  }
  // A search among very many takes long. It is not asked all the time.
  if (!document.hidden) timer = setTimeout(refresh, Math.max(POLL_MS, 10 * (performance.now() - began)));
}

for (const element of document.querySelectorAll("[data-reload]")) element.hidden = true;
timer = setTimeout(refresh, POLL_MS);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(timer);
  else refresh();
});
