// Tells the server what was scanned, and learns what other devices have scanned. For the page and for its worker.
"use strict";
{
  const PATIENCE = 8_000;
  const AT_ONCE = 100;

  class SignedOut extends Error {}
  class Refused extends Error {}

  async function ask(address, options = {}) {
    const limits = { redirect: "manual", cache: "no-store", signal: AbortSignal.timeout(PATIENCE) };
    const answer = await fetch(address, { ...limits, ...options });
    if (answer.type === "opaqueredirect") throw new SignedOut();
    if (answer.status >= 400 && answer.status < 500 && answer.status !== 429) throw new Refused();
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return answer.json();
  }

  function send(base, token, device, scans) {
    const told = scans.map((each) => ({ id: each.id, text: each.text, told_at: each.at, let_in: Boolean(each.letIn) }));
    return ask(`${base}/scans`, {
      method: "POST",
      body: new URLSearchParams({ token, device, scans: JSON.stringify(told) }),
    });
  }

  async function hear(store, base, answered) {
    let news;
    do {
      news = await ask(`${base}/news?after=${(await store.fact("last")) ?? 0}`);
      await store.hear(news, answered);
    } while (news.more);
    return news;
  }

  async function load(store, base) {
    for (let attempt = 0; attempt < 3; attempt++) {
      const list = [];
      let part = { more: 0 };
      let version;
      do {
        part = await ask(`${base}/list?after=${part.more}`);
        version ??= part.version;
        list.push(...part.people);
      } while (part.more !== null && part.version === version);
      if (part.version === version) return store.replace(list, version, Date.parse(part.until));
    }
    throw new Error("the list changes all the time");
  }

  // Sends what is unsent, and hears what is new. Returns `{ state, news, answered }`; the state is `online`,
  // `offline`, `signed out` or `refused`. The page and the worker do it one after the other.
  function synchronize(store, base) {
    return navigator.locks.request(`check-in ${base}`, async () => {
      const answered = [];
      try {
        let news = await hear(store, base, []);
        const unsent = await store.unsent();
        for (const device of new Set(unsent.map((each) => each.device))) {
          const scans = unsent.filter((each) => each.device === device);
          for (let first = 0; first < scans.length; first += AT_ONCE) {
            const verdicts = await send(base, news.token, device, scans.slice(first, first + AT_ONCE));
            // Only with the news are they known as stored scans. So no scan is forgotten in between.
            news = await hear(store, base, verdicts);
            answered.push(...verdicts);
          }
        }
        if (news.version === null) await store.forget();
        else {
          if (news.version !== (await store.fact("version"))) await load(store, base);
          await store.checked();
        }
        return { state: "online", news, answered };
      } catch (error) {
        if (!(error instanceof SignedOut || error instanceof Refused)) return { state: "offline", answered };
        await store.forget();
        return { state: error instanceof SignedOut ? "signed out" : "refused", answered };
      }
    });
  }

  // What the server says of a text that is not on the list of this device.
  async function askServer(base, device, text) {
    const { token } = await ask(`${base}/news?after=${Number.MAX_SAFE_INTEGER}`);
    const [verdict] = await send(base, token, device, [{ id: crypto.randomUUID(), text, at: Date.now() }]);
    return verdict;
  }

  Object.assign(globalThis, { synchronize, askServer });
}
