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

function showLinks(links) {
  const entries = links.map(([name, address]) => {
    const link = document.createElement("a");
    link.textContent = name;
    link.href = address;
    link.addEventListener("click", (event) => {
      event.preventDefault();
      send({ go: address });
    });
    return link;
  });
  nav.replaceChildren(...entries);
  nav.hidden = false;
}

addEventListener("message", async (event) => {
  if (event.origin !== app || event.source !== frame.contentWindow) return;
  const { wants, title: text, nav: links, toast: said, saveBar: isShown } = event.data ?? {};
  if (wants === "id_token") {
    const answer = await fetch(frame.dataset.tokens);
    const { token } = await answer.json();
    send({ id_token: token });
  }
  if (text) {
    title.textContent = text;
    saveBar.hidden = true; // a new page
  }
  if (links) showLinks(links.filter(([, address]) => new URL(address).origin === app));
  if (said) toast.textContent = said;
  if (isShown !== undefined) saveBar.hidden = !isShown;
});

saveBar.querySelector("[data-save]").addEventListener("click", () => send({ save: true }));
saveBar.querySelector("[data-discard]").addEventListener("click", () => send({ discard: true }));
