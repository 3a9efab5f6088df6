// Searches the events while somebody types: the service draws the list for what is typed so far. Without this script the
// button does.
"use strict";

{
  const DELAY_MILLISECONDS = 250;
  const form = document.querySelector("form[role=search]");
  let timer;
  let request;

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
      document.getElementById("live").replaceChildren(...list.childNodes);
      // live.js fetches this address again.
      history.replaceState(null, "", address);
    } catch {
      // A newer search has begun, or there is no connection: the button says so.
    }
  }

  form?.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, DELAY_MILLISECONDS);
  });
}
