// The worker of one check-in: it opens the page without a network, and sends scans after the page was closed.
// The server puts `store.js` and `sync.js` before it, so that it is one file.
"use strict";
{
  const base = new URL(self.registration.scope).pathname;
  const eventId = base.split("/").at(-2);
  const TIMEOUT_MS = 5_000;

  self.addEventListener("install", () => self.skipWaiting());
  self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

  self.addEventListener("fetch", (event) => {
    const { pathname, origin } = new URL(event.request.url);
    if (event.request.method !== "GET" || origin !== location.origin) return;
    if (event.request.mode === "navigate" && pathname === base) event.respondWith(page(event.request));
    else if (pathname.startsWith("/assets/")) event.respondWith(asset(event.request));
  });

  const cachedResponse = async (address) => (await caches.open(`check-in ${eventId}`)).match(address);

  // The page of the server; the one that was kept if the server cannot be reached, or fails.
  async function page(request) {
    try {
      const answer = await fetch(request, { signal: AbortSignal.timeout(TIMEOUT_MS) });
      if (answer.status < 500) return answer;
      return (await cachedResponse(`${base}/shell`)) ?? answer;
    } catch (error) {
      const shell = await cachedResponse(`${base}/shell`);
      if (shell) return shell;
      throw error;
    }
  }

  // Files at such addresses never change.
  async function asset(request) {
    return (await cachedResponse(request.url)) ?? fetch(request);
  }

  self.addEventListener("sync", (event) => event.waitUntil(sendRest()));

  async function sendRest() {
    const store = await openStore(eventId);
    const { state } = await synchronize(store, base);
    // The browser tries again later.
    if (state === "offline" && (await store.unsent()).length) throw new Error("there is no network yet");
  }
}
