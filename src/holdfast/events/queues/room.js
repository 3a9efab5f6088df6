// Brings a waiting room up to date without reloading it. The page does the same by itself where no script runs.
"use strict";

let timer;
let announcedAt = Date.now();

function localize() {
  // The page is in one language. Of the languages of the browser, the one for it may write times in another way.
  const { lang } = document.documentElement;
  const locale = navigator.languages.find((candidate) => candidate.split("-")[0] === lang) ?? lang;
  for (const time of document.querySelectorAll("time")) {
    const clock = { hour: "numeric", minute: "2-digit", timeZoneName: "short" };
    const date = { day: "numeric", month: "long", year: "numeric" };
    const style = "clock" in time.dataset ? { ...clock, second: "2-digit" } : { ...date, ...clock };
    time.textContent = new Intl.DateTimeFormat(locale, style).format(new Date(time.dateTime));
  }
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

async function refresh() {
  clearTimeout(timer);
  let seconds = 10;
  try {
    const answer = await fetch(location.pathname + location.search, { redirect: "manual", cache: "no-store" });
    if (answer.type === "opaqueredirect") {
      location.reload(); // it is our turn: the same request again, and the browser follows
      return;
    }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = fresh.querySelector("main[data-state]");
    if (main) {
      show(fresh);
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

localize();
tellParent();
schedule(Number(document.querySelector("main").dataset.refresh));
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && document.querySelector("main").dataset.refresh) refresh();
});
