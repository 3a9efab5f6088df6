// What a device at the entrance keeps of one event, for a page and for the worker beside it.
//
// people   the list: names, the ends of codes, how they stand. Nothing of other events, no addresses of pages. It is
//          deleted when the event is over, on sign-out, and when the session has ended: other people's names do not
//          stay in a browser that needs them no more.
// scans    what the server has told of scans, without names
// unsent   scans that the server has not confirmed, without names. They outlive the session and the tab.
// wrong    scans that this device let in and the server did not: they stay until the staff have seen them
// facts    single values: the name of the state of the list, when it was checked, what was heard last
"use strict";
{
  const NAMES = ["people", "scans", "unsent", "wrong", "facts"];

  const done = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });

  async function openStore(eventId) {
    const request = indexedDB.open(`check-in ${eventId}`, 1);
    request.onupgradeneeded = () => {
      const database = request.result;
      database.createObjectStore("people");
      database.createObjectStore("facts");
      for (const name of ["scans", "unsent", "wrong"]) {
        database.createObjectStore(name, { keyPath: "id" }).createIndex("arrival", "arrival");
      }
    };
    const database = await done(request);
    // Another page deletes everything when the event is over.
    database.onversionchange = () => database.close();
    return new Store(database);
  }

  class Store {
    constructor(database) {
      this.database = database;
    }

    // Does something with all of it, whole or not at all. Inside, only requests to the store may be waited for.
    async within(work) {
      const transaction = this.database.transaction(NAMES, "readwrite", { durability: "strict" });
      const ended = new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      });
      const parts = Object.fromEntries(NAMES.map((name) => [name, transaction.objectStore(name)]));
      const result = await work(parts);
      await ended;
      return result;
    }

    fact(name) {
      return this.within(({ facts }) => done(facts.get(name)));
    }

    // How it stands as far as this device knows: how many are in, what is not sent, how old the list is.
    standing() {
      return this.within(async ({ unsent, facts }) => {
        const scans = await done(unsent.getAll());
        const { entered = 0, registered = 0 } = (await done(facts.get("counts"))) ?? {};
        const mine = scans.filter((scan) => scan.letIn).length;
        const [checkedAt, until] = [await done(facts.get("checkedAt")), await done(facts.get("until"))];
        return { entered: entered + mine, registered, unsent: scans.length, checkedAt, until };
      });
    }

    // In the order in which they were made: the server takes the first of a person for the entry.
    async unsent() {
      const scans = await this.within(({ unsent }) => done(unsent.getAll()));
      return scans.sort((one, other) => one.at - other.at);
    }

    wrong() {
      return this.within(({ wrong }) => done(wrong.getAll()));
    }

    seen(id) {
      return this.within(({ wrong }) => done(wrong.delete(id)));
    }

    // What the list says of a code, and, for a person with a seat, the scan: it is kept to be sent.
    judge(code, device) {
      return this.within(async ({ people, scans, unsent, facts }) => {
        const checkedAt = await done(facts.get("checkedAt"));
        if (checkedAt === undefined) return { say: "no_list" };
        const [proofs, state, name] = (await done(people.get(code.arrival))) ?? [[]];
        if (!proofs.includes(code.proof)) return { say: "unlisted", at: checkedAt };
        if (state !== "r") return { say: { w: "waitlisted", p: "pending", n: "no_show", x: "rejected" }[state], name };
        const known = (await done(scans.index("arrival").getAll(code.arrival))).find((scan) => scan.isEntry);
        const mine = (await done(unsent.index("arrival").getAll(code.arrival))).sort((a, b) => a.at - b.at)[0];
        const entry = known ?? mine;
        const scan = { id: crypto.randomUUID(), arrival: code.arrival, text: code.code, at: Date.now(), device };
        await done(unsent.put({ ...scan, letIn: !entry }));
        return { say: entry ? "double" : "in", name, at: entry?.at, device: entry?.device, id: scan.id };
      });
    }

    // Stores the changes that the server has sent, and deletes the sent scans, on which it has sent `verdicts`.
    storeChanges(changes, verdicts) {
      return this.within(async ({ scans, unsent, wrong, facts }) => {
        for (const scan of changes.scans) {
          const at = Date.parse(scan.told_at);
          scans.put({ id: scan.id, arrival: scan.arrival, device: scan.device, at, isEntry: scan.is_entry });
        }
        for (const { id, say } of verdicts) {
          const sent = await done(unsent.get(id));
          unsent.delete(id);
          const isFine = ["in", "double", "taken_back"].includes(say);
          if (sent?.letIn && !isFine) wrong.put({ id, say, text: sent.text, at: sent.at, arrival: sent.arrival });
        }
        facts.put(changes.last, "last");
        facts.put(changes.counts, "counts");
        facts.put(Date.now(), "heardAt");
      });
    }

    // Puts a new list in the place of the old one.
    replace(list, version, until) {
      return this.within(({ people, facts }) => {
        people.clear();
        for (const [arrival, ...rest] of list) people.put(rest, arrival);
        facts.put(version, "version");
        facts.put(until, "until");
      });
    }

    checked() {
      return this.within(({ facts }) => done(facts.put(Date.now(), "checkedAt")));
    }

    // Deletes the list. What was scanned stays.
    forget() {
      return this.within(({ people, facts }) => {
        people.clear();
        facts.delete("version");
        facts.delete("checkedAt");
      });
    }
  }

  globalThis.openStore = openStore;
}
