// Sends a registration form again that was refused because very many are sent. Each browser waits as long as it was told,
// and a random time more, so that they do not all come back at once. A person who is registered already stays so: an address
// is registered once for an event.
"use strict";

const MAX_MINUTES = 5;
const MIN_SPREAD_SECONDS = 2;
const MAX_WAIT_SECONDS = 60;

const note = document.querySelector("[data-again]");
const form = note.closest("form");
const tries = document.getElementById("tries");
const until = performance.now() + MAX_MINUTES * 60_000;
let count = 1;

function plan(seconds) {
  const wait = (seconds + Math.random() * Math.max(MIN_SPREAD_SECONDS, seconds)) * 1000;
  if (seconds > MAX_WAIT_SECONDS || performance.now() + wait > until) {
    note.textContent = note.dataset.stopped;
    tries.hidden = true;
  } else {
    setTimeout(send, wait);
  }
}

async function send() {
  let seconds = Number(note.dataset.again);
  const button = form.querySelector("[type=submit]");
  count += 1;
  tries.querySelector("span").textContent = count;
  button.disabled = true;
  try {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.action, { method: "POST", body, cache: "no-store" });
    if (answer.redirected) {
      location.replace(answer.url);
      return;
    }
    if (answer.status !== 429 && answer.status !== 503) {
      form.submit(); // the same once more, so that the browser shows the answer
      return;
    }
    seconds = Number(answer.headers.get("retry-after")) || seconds;
  } catch {
    // There is no connection, or no answer: that may be over soon.
  }
  button.disabled = false;
  plan(seconds);
}

note.textContent = note.dataset.waits;
tries.hidden = false;
plan(Number(note.dataset.again));
