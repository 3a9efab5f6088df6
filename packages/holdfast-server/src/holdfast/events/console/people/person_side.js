// On a wide screen a person of the list opens at its side. Elsewhere, and with a modifier key, the link leads to the page.
"use strict";

{
  const isWide = matchMedia("(min-width: 75rem)");
  const list = document.getElementById("live");
  const side = document.getElementById("side");
  const content = side.querySelector("[data-content]");
  let address;
  let opener;

  async function load() {
    const source = address;
    const answer = await fetch(source, { redirect: "error" }).catch(() => null);
    if (source !== address) return false;
    if (!answer?.ok) return false;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = page.querySelector("main");
    if (!main || source !== address) return false;
    main.querySelector(".crumbs")?.remove();
    const title = main.querySelector("h1");
    const heading = document.createElement("h2");
    heading.append(...title.childNodes);
    title.replaceWith(heading);
    // The list has these ids, and is the part that a stream brings up to date.
    for (const part of main.querySelectorAll("[data-live]")) {
      part.removeAttribute("id");
      for (const name of ["live", "stream", "about", "lost"]) delete part.dataset[name];
    }
    content.replaceChildren(...main.childNodes);
    return true;
  }

  async function open(link) {
    address = link.href;
    opener = link.id;
    if (!(await load())) {
      location.assign(link.href);
      return;
    }
    side.querySelector("[data-page]").href = address;
    side.hidden = false;
    side.focus();
  }

  function close() {
    address = undefined;
    side.hidden = true;
    content.replaceChildren();
    document.getElementById(opener)?.focus();
  }

  list.addEventListener("click", (event) => {
    const link = event.target.closest("tbody th a");
    if (!link || !isWide.matches || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    void open(link);
  });
  side.querySelector("[data-close]").addEventListener("click", close);
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape" && address) close();
  });
  // What changes in the list may concern the person.
  new MutationObserver(() => {
    if (address && !content.contains(document.activeElement)) void load();
  }).observe(list, { childList: true });
}
