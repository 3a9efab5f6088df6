// Stands in for the platform's script on pages of apps: it asks the admin around the page for a session token, and has it
// show the navigation, the title, toasts and the save bar.
(() => {
  const admin = new URL(document.currentScript.src).origin;
  const app = document.querySelector('meta[name="shopify-api-key"]').content;
  const shop = new URLSearchParams(location.search).get("shop");
  const send = (message) => window.parent.postMessage(message, admin);

  window.shopify = {
    idToken: () =>
      new Promise((resolve) => {
        if (window.parent === window) {
          location.assign(`${admin}/${encodeURIComponent(shop)}/admin/apps/${encodeURIComponent(app)}`);
          return;
        }
        addEventListener("message", (event) => {
          if (event.origin === admin && event.data?.id_token) resolve(event.data.id_token);
        });
        send({ wants: "id_token" });
      }),
    toast: { show: (text) => send({ toast: String(text) }) },
  };

  const element = (connected) =>
    class extends HTMLElement {
      connectedCallback() {
        // Its children are parsed after it.
        document.addEventListener("DOMContentLoaded", () => connected(this));
      }
    };
  const links = (nav) => [...nav.querySelectorAll('a:not([rel="home"])')].map((link) => [link.textContent, link.href]);
  customElements.define("s-app-nav", element((nav) => send({ nav: links(nav), at: location.href })));
  customElements.define("ui-title-bar", element((bar) => send({ title: bar.getAttribute("title") })));

  const form = () => document.querySelector("form[data-save-bar]");
  document.addEventListener("input", ({ target }) => target.form === form() && form() && send({ saveBar: true }));
  document.addEventListener("submit", ({ target }) => target === form() && send({ saveBar: false }));
  document.addEventListener("reset", ({ target }) => target === form() && send({ saveBar: false }));
  addEventListener("message", ({ origin, data }) => {
    if (origin !== admin) return;
    if (data?.go) location.assign(data.go);
    if (data?.save) form()?.requestSubmit();
    if (data?.discard) form()?.reset();
  });
})();
