// Shows how a registration went as soon as it is known, without reloading the page. The page does the same by itself
// where no script runs.
"use strict";

let timer;

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
  main.replaceWith(next);
}

async function refresh() {
  let seconds = 5;
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = fresh.querySelector("main[data-state]");
    if (main) {
      show(fresh);
      seconds = Number(main.dataset.refresh);
    }
  } catch {
    const main = document.querySelector("main");
    main.querySelector(".soft").textContent = main.dataset.lost;
  }
  schedule(seconds);
}

schedule(Number(document.querySelector("main").dataset.refresh));
