// Brings the picture of a queue up to date, without loading the page again. Where no script runs, a link does it.
"use strict";

const OFTEN = 3_000;
const ANNOUNCED = 60_000;
const said = document.querySelector("[data-says]");
let announcedAt = Date.now();
let timer;

function say(text) {
  said.textContent = text;
  announcedAt = Date.now();
}

function show(fresh) {
  const part = document.getElementById("picture");
  const next = fresh.getElementById("picture");
  const before = part.firstElementChild.textContent;
  part.replaceChildren(...next.childNodes);
  // Screen readers are told how the queue stands when that changes, once a minute at most.
  const after = part.firstElementChild.textContent;
  const wasLost = !said.classList.contains("unseen");
  if (wasLost || (after !== before && Date.now() - announcedAt > ANNOUNCED)) say(after);
  said.classList.add("unseen");
}

async function refresh() {
  clearTimeout(timer);
  try {
    const answer = await fetch(location.pathname + location.search, { redirect: "manual", cache: "no-store" });
    if (answer.type === "opaqueredirect" || answer.status === 404) {
      location.reload(); // signed out, or deleted: the same request again
      return;
    }
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    show(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    said.classList.remove("unseen");
    const { lost } = document.getElementById("picture").dataset;
    if (said.textContent !== lost) say(lost);
  }
  if (!document.hidden) timer = setTimeout(refresh, OFTEN);
}

document.querySelector("[data-reload]").hidden = true;
timer = setTimeout(refresh, OFTEN);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(timer);
  else refresh();
});
