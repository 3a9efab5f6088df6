// Tells the app in the frame who looks at it, and shows around it what its script asks for.
const frame = document.querySelector("iframe");
const app = new URL(frame.dataset.app).origin;
const title = document.querySelector("[data-title]");
const nav = document.querySelector("[data-nav]");
const toast = document.querySelector("[data-toast]");
const saveBar = document.querySelector("[data-save-bar]");

function send(message) {
  frame.contentWindow.postMessage(message, app);
}

// The link of the page, or of the nearest page above it, is the current one.
function showLinks(links, at) {
  const isAbove = ([, address]) => `${at.pathname}/`.startsWith(`${new URL(address).pathname.replace(/\/$/, "")}/`);
  const [current] = links.filter(isAbove).sort(([, one], [, other]) => other.length - one.length);
  const entries = links.map(([name, address]) => {
    const link = document.createElement("a");
    link.textContent = name;
    link.href = address;
    if (address === current?.[1]) link.setAttribute("aria-current", "page");
    link.addEventListener("click", (event) => {
      event.preventDefault();
      send({ go: address });
    });
    return link;
  });
  nav.replaceChildren(...entries);
  nav.hidden = false;
  nav.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

addEventListener("message", async (event) => {
  if (event.origin !== app || event.source !== frame.contentWindow) return;
  const { wants, title: text, nav: links, at, toast: said, saveBar: isShown } = event.data ?? {};
  if (wants === "id_token") {
    const answer = await fetch(frame.dataset.tokens);
    const { token } = await answer.json();
    send({ id_token: token });
  }
  if (text) {
    title.textContent = text;
    saveBar.hidden = true; // a new page
  }
  if (links) showLinks(links.filter(([, address]) => new URL(address).origin === app), new URL(at));
  if (said) toast.textContent = said;
  if (isShown !== undefined) saveBar.hidden = !isShown;
});

saveBar.querySelector("[data-save]").addEventListener("click", () => send({ save: true }));
saveBar.querySelector("[data-discard]").addEventListener("click", () => send({ discard: true }));
