// Sends scans to the server, and receives the scans of other devices. For the page and for its worker.
"use strict";
{
  const TIMEOUT_MS = 8_000;
  const MAX_SCANS_PER_REQUEST = 100;

  class SignedOutError extends Error {}
  class RefusedError extends Error {}

  async function fetchJson(address, options = {}) {
    const limits = { redirect: "manual", cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) };
    const answer = await fetch(address, { ...limits, ...options });
    if (answer.type === "opaqueredirect") throw new SignedOutError();
    if (answer.status >= 400 && answer.status < 500 && answer.status !== 429) throw new RefusedError();
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return answer.json();
  }

  function send(base, formToken, device, scans) {
    const body = scans.map((scan) => ({ id: scan.id, text: scan.text, told_at: scan.at, let_in: Boolean(scan.letIn) }));
    return fetchJson(`${base}/scans`, {
      method: "POST",
      body: new URLSearchParams({ token: formToken, device, scans: JSON.stringify(body) }),
    });
  }

  // Receives all changes, and stores them with the verdicts on the scans that were sent. Returns the last answer.
  async function receiveChanges(store, base, verdicts) {
    let changes;
    do {
      changes = await fetchJson(`${base}/news?after=${(await store.fact("last")) ?? 0}`);
      await store.storeChanges(changes, verdicts);
    } while (changes.more);
    return changes;
  }

  async function load(store, base) {
    for (let attempt = 0; attempt < 3; attempt++) {
      const list = [];
      let part = { more: 0 };
      let version;
      do {
        part = await fetchJson(`${base}/list?after=${part.more}`);
        version ??= part.version;
        list.push(...part.people);
      } while (part.more !== null && part.version === version);
      if (part.version === version) return store.replace(list, version, Date.parse(part.until));
    }
    throw new Error("the list changes all the time");
  }

  // Sends the unsent scans, and receives the changes. Returns `{ state, changes, verdicts }`; the state is `online`,
  // `offline`, `signed out` or `refused`. The page and the worker do it one after the other.
  function synchronize(store, base) {
    return navigator.locks.request(`check-in ${base}`, async () => {
      const verdicts = [];
      try {
        let changes = await receiveChanges(store, base, []);
        const unsent = await store.unsent();
        for (const device of new Set(unsent.map((scan) => scan.device))) {
          const scans = unsent.filter((scan) => scan.device === device);
          for (let first = 0; first < scans.length; first += MAX_SCANS_PER_REQUEST) {
            const batch = scans.slice(first, first + MAX_SCANS_PER_REQUEST);
            const batchVerdicts = await send(base, changes.token, device, batch);
            // `storeChanges` deletes the sent scans in the same transaction in which it stores them as scans of the
            // server. So no scan is missing in between.
            changes = await receiveChanges(store, base, batchVerdicts);
            verdicts.push(...batchVerdicts);
          }
        }
        if (changes.version === null) await store.forget();
        else {
          if (changes.version !== (await store.fact("version"))) await load(store, base);
          await store.checked();
        }
        return { state: "online", changes, verdicts };
      } catch (error) {
        if (!(error instanceof SignedOutError || error instanceof RefusedError)) return { state: "offline", verdicts };
        await store.forget();
        return { state: error instanceof SignedOutError ? "signed out" : "refused", verdicts };
      }
    });
  }

  // Sends one scan of a code that is not on the list of this device. The server stores it, if the person has a seat, and
  // the result is its verdict.
  async function checkInOnline(base, device, text) {
    // No change has so high a number: this request only fetches a form token.
    const { token } = await fetchJson(`${base}/news?after=${Number.MAX_SAFE_INTEGER}`);
    const [verdict] = await send(base, token, device, [{ id: crypto.randomUUID(), text, at: Date.now() }]);
    return verdict;
  }

  Object.assign(globalThis, { synchronize, checkInOnline });
}
