// Makes the check-in page a scanner that goes on without a network. Without it, the form of the page does the same.
"use strict";
{
  const POLL_MS = 5_000;
  const CHECK_MS = 15_000; // between two polls beside a stream
  const REFRESH_MS = 300;
  const SAME_CODE_MS = 4_000; // how long a code that stays in the picture is not read once more
  const part = (id) => document.getElementById(id);
  const { path, event: eventId, zone, worker } = part("scanner").dataset;
  const language = document.documentElement.lang;
  const clock = new Intl.DateTimeFormat(language, { timeStyle: "short", timeZone: zone });
  const number = new Intl.NumberFormat(language);
  let store;
  let timer;
  let events;
  let shownId;
  let stopCamera;
  let last = { text: "", at: 0 };
  let busy = Promise.resolve();

  function show({ say, name, at, device, id }) {
    shownId = id;
    const verdict = document.querySelector(`template[data-say="${say}"]`).content.cloneNode(true);
    const filled = { name: name ?? "", device: device ?? "", at: at ? clock.format(at) : "" };
    for (const slot of verdict.querySelectorAll("[data-fill]")) slot.textContent = filled[slot.dataset.fill];
    const { kind } = verdict.firstElementChild.dataset;
    part("verdict").replaceChildren(verdict);
    part("verdict").scrollIntoView({ block: "nearest" });
    signal(kind);
  }

  const showVerdict = ({ id, say, name, entry }) =>
    show({ say, name, id, at: entry && Date.parse(entry.told_at), device: entry?.device });

  const DEVICE = "check-in device"; // where the browser keeps the name of this device

  // The name that scans have: the default, if no other one was typed.
  function deviceName() {
    const name = part("device").value.trim() || part("device").defaultValue;
    part("device-name").textContent = name;
    // The forms for people without a code tell the name too.
    for (const field of document.querySelectorAll("input[type=hidden][name=device]")) field.value = name;
    return name;
  }

  // The name is asked for once: with the first scan it is kept.
  function keepDeviceName() {
    localStorage.setItem(DEVICE, deviceName());
    part("this-device").open = false;
  }

  // Says what a text means: by the list at once, and by the server where the list does not know.
  async function read(text) {
    const device = deviceName();
    keepDeviceName();
    const code = await readCode(text, eventId);
    const judged = code?.arrival ? await store.judge(code, device) : { say: code ? "other_event" : "unknown" };
    if (!["unlisted", "no_list"].includes(judged.say)) {
      show(judged);
      if (judged.id) keepOn();
      return;
    }
    show({ say: "asking" });
    try {
      showVerdict(await checkInOnline(path, device, text));
      keepOn();
    } catch {
      show(judged);
    }
  }

  // One after the other, so that two reads of one code cannot both find that the person is not in.
  function readInTurn(text) {
    busy = busy.then(() => read(text)).catch((error) => console.error(error));
    return busy;
  }

  function seen(text) {
    const isSame = text === last.text && performance.now() - last.at < SAME_CODE_MS;
    last = { text, at: performance.now() };
    if (isSame) return;
    readInTurn(text);
  }

  async function keepOn() {
    await standing();
    const registration = await navigator.serviceWorker.getRegistration(path);
    // Where the browser can, it sends scans also after this page was closed.
    await registration?.sync?.register("scans").catch(() => {});
    refresh();
  }

  async function standing(state) {
    const { entered, registered, unsent, checkedAt } = await store.standing();
    if (registered) {
      part("in").hidden = false;
      part("nobody")?.remove();
      part("entered").textContent = number.format(entered);
      part("registered").textContent = number.format(registered);
    }
    part("unsent").querySelector("strong").textContent = number.format(unsent);
    part("list").hidden = !checkedAt;
    part("no-list").hidden = Boolean(checkedAt);
    if (checkedAt) part("list").querySelector("time").textContent = clock.format(checkedAt);
    if (state) {
      for (const line of part("connection").children) line.hidden = line.dataset.state !== state;
    }
    part("net").hidden = false;
    await listWrong();
  }

  async function listWrong() {
    const rows = (await store.wrong()).map((scan) => {
      const row = part("wrong-row").content.cloneNode(true);
      row.querySelector("bdi").textContent = scan.text;
      row.querySelector("time").textContent = clock.format(scan.at);
      row.querySelector("button").addEventListener("click", () => store.seen(scan.id).then(listWrong));
      return row;
    });
    part("wrong").hidden = !rows.length;
    part("wrong").replaceChildren(...rows);
  }

  async function refresh() {
    clearTimeout(timer);
    const began = performance.now();
    const { state, changes, verdicts } = await synchronize(store, path);
    const mine = verdicts.find((verdict) => verdict.id === shownId);
    if (mine && mine.say !== document.querySelector("#verdict [data-says]")?.dataset.says) showVerdict(mine);
    await standing(state);
    if (changes?.scans.length || verdicts.length) await report();
    if (state === "online") await clearUp();
    clearTimeout(timer);
    const pause = events?.readyState === EventSource.OPEN ? CHECK_MS : POLL_MS;
    if (!document.hidden) timer = setTimeout(refresh, Math.max(pause, 10 * (performance.now() - began)));
  }

  // The stream tells when another device has let a person in. A page that is hidden has none.
  function follow() {
    events?.close();
    events = document.hidden ? undefined : new EventSource("/console/stream");
    events?.addEventListener("changed", ({ data }) => {
      const { changed } = JSON.parse(data);
      if (changed && !changed.includes(`event ${eventId}`)) return;
      clearTimeout(timer);
      timer = setTimeout(refresh, REFRESH_MS);
    });
    let wasOpen = false;
    events?.addEventListener("open", () => (wasOpen = true));
    events?.addEventListener("error", () => {
      if (wasOpen) refresh();
      wasOpen = false;
    });
  }

  // The report is the server's. Without a network it stays as it was.
  async function report() {
    try {
      const answer = await fetch(location.pathname + location.search, { redirect: "manual", cache: "no-store" });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("report");
      const focused = part("report")?.contains(document.activeElement) || part("report")?.matches(":active");
      if (answer.ok && fresh && !focused) part("report")?.replaceChildren(...fresh.childNodes);
    } catch {
      // The next change brings it.
    }
  }

  // When the event is over and all is sent, nothing stays in the browser.
  async function clearUp() {
    const { until, unsent, checkedAt } = await store.standing();
    if (checkedAt || !until || until > Date.now() || unsent || (await store.wrong()).length) return;
    await caches.delete(`check-in ${eventId}`);
    await (await navigator.serviceWorker.getRegistration(path))?.unregister();
  }

  // Keeps the page and its files, to open it without a network. The page is kept without any people in it.
  async function keep() {
    const registration = await navigator.serviceWorker.register(worker, { scope: path });
    const cache = await caches.open(`check-in ${eventId}`);
    const shell = await fetch(`${path}/shell${location.search.includes("lang=") ? `?lang=${language}` : ""}`);
    if (!shell.ok || shell.redirected) return;
    const files = [...document.querySelectorAll("script[src]")].map((script) => script.src);
    await cache.addAll([...files, document.querySelector('link[rel="icon"]').href]);
    await cache.put(`${path}/shell`, shell);
    await registration.update().catch(() => {});
    document.body.dataset.kept = "";
  }

  async function begin() {
    store = await openStore(eventId);
    const { until } = await store.standing();
    if (until && until < Date.now()) await store.forget();
    const known = localStorage.getItem(DEVICE);
    if (known) part("device").value = known;
    deviceName();
    part("device").addEventListener("input", deviceName);
    part("device").addEventListener("change", keepDeviceName);
    connectSound(part("sound"));
    part("typing").addEventListener("submit", (event) => {
      event.preventDefault();
      const text = part("text").value.trim();
      part("no-code").hidden = Boolean(text);
      if (text) readInTurn(text);
      part("text").value = "";
      part("text").focus();
    });
    part("camera-on").addEventListener("click", camera);
    part("camera-off").addEventListener("click", noCamera);
    const goOn = () => {
      follow();
      clearTimeout(timer);
      if (!document.hidden) refresh();
    };
    addEventListener("online", goOn);
    document.addEventListener("visibilitychange", goOn);
    follow();
    await standing(navigator.onLine ? "online" : "offline");
    await Promise.all([refresh(), keep().catch(() => {})]);
  }

  async function camera() {
    keepDeviceName();
    part("camera-fails").hidden = true;
    part("camera").hidden = false;
    try {
      stopCamera = await watchCamera(part("camera"), seen);
      part("camera-on").hidden = true;
      part("camera-off").hidden = false;
    } catch {
      part("camera").hidden = true;
      part("camera-fails").hidden = false;
    }
  }

  function noCamera() {
    stopCamera();
    part("camera").hidden = true;
    part("camera-on").hidden = false;
    part("camera-off").hidden = true;
  }

  // Browsers give all of this only to pages that no machine between can change. Elsewhere the form works as it is.
  if (isSecureContext && navigator.serviceWorker) begin();
}
