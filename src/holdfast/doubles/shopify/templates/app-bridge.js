// Stands in for the platform's script on pages of apps: it asks the admin around the page for a session token.
(() => {
  const admin = new URL(document.currentScript.src).origin;
  const app = document.querySelector('meta[name="shopify-api-key"]').content;
  const shop = new URLSearchParams(location.search).get("shop");

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
        window.parent.postMessage({ wants: "id_token" }, admin);
      }),
  };
})();
