// Searches the events during typing: the service draws the list for what is typed so far. Without this script the
// button does.
"use strict";

{
  const DELAY_MILLISECONDS = 250;
  // During this time live.js may still bring the list of the address before the search.
  const OLD_LIST_MILLISECONDS = 5_000;
  const form = document.querySelector("form[role=search]");
  const part = document.getElementById("live");
  let timer;
  let request;
  let typedAt = -Infinity;

  async function search() {
    request?.abort();
    request = new AbortController();
    const query = new URLSearchParams(new FormData(form));
    if (!query.get("q").trim()) query.delete("q");
    const address = `${form.action}${query.size ? `?${query}` : ""}`;
    try {
      const answer = await fetch(address, { signal: request.signal, redirect: "error" });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const list = page.getElementById("live");
      if (!list) return;
      // live.js fetches this address from now on.
      history.replaceState(null, "", address);
      part.replaceChildren(...list.childNodes);
      drawing.takeRecords();
    } catch {
      // A newer search has begun, or there is no connection: the button says so.
    }
  }

  const drawing = new MutationObserver(() => {
    if (performance.now() - typedAt < OLD_LIST_MILLISECONDS) void search();
  });
  drawing.observe(part, { childList: true });

  form?.addEventListener("input", () => {
    typedAt = performance.now();
    clearTimeout(timer);
    timer = setTimeout(search, DELAY_MILLISECONDS);
  });
}
