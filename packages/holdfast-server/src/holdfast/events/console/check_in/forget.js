// On every page with a button to sign out: the lists of people that check-ins have kept are deleted first. Lists of
// events that are over are deleted as soon as such a page is opened.
"use strict";
{
  const TIMEOUT_MS = 1_500;

  async function forgetLists(isOld) {
    for (const { name } of (await globalThis.indexedDB?.databases?.()) ?? []) {
      if (!name.startsWith("check-in ")) continue;
      const store = await openStore(name.slice("check-in ".length));
      if (isOld(await store.fact("until"))) await store.forget();
      store.database.close();
    }
  }

  forgetLists((until) => until < Date.now()).catch(() => {});

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    const { pathname } = new URL(form.action);
    if (!["/sign-out", "/account", "/account/secure"].includes(pathname) || form.dataset.forgets) return;
    event.preventDefault();
    form.dataset.forgets = "done";
    const timeout = new Promise((after) => setTimeout(after, TIMEOUT_MS));
    await Promise.race([forgetLists(() => true).catch(() => {}), timeout]);
    form.requestSubmit(event.submitter);
  });
}
