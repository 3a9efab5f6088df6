/* The live number of variants. All blocks of a page share a source: it asks the app proxy, follows the stream that the
 * answer names, and asks again if that fails. A hidden page asks nothing. */
(() => {
"use strict";
if (customElements.get("live-stock")) return;

const TIMEOUT_MS = 10e3; // for an answer or a first event
const STEADY_MS = 30e3; // a stream of this length was good
const MAX_WAIT_MS = 60e3; // between two requests without a stream
const RECHECK_MS = 300e3; // between two checks of a stream
const MAX_TRIES = 8; // silent streams before none is tried
const MAX_AGE_MS = 600e3; // of numbers that are shown
const PAUSE_MS = 10e3; // between two announcements of a variant
const GID = "gid://shopify/ProductVariant/";

const numbersOf = (map) => Object.entries(map).filter(([, number]) => Number.isInteger(number));
let language = [];
try {
  language = Intl.getCanonicalLocales(document.documentElement.lang);
} catch {
  /* use the language of the browser */
}
const sources = new Map();
const all = (act) => () => sources.forEach(act);

class Source {
  constructor(url) {
    this.url = url;
    this.blocks = new Set();
    this.numbers = new Map();
    this.wasOut = new Set(); // sold out since this page was opened
    this.updatedAt = 0;
    this.staleSince = ""; // that time as text, while requests fail
    this.stop();
  }

  start() {
    if (this.awake || document.hidden || !this.blocks.size) return;
    this.awake = true;
    this.ask();
  }

  stop() {
    this.awake = false;
    this.failures = this.silentStreams = 0;
    this.closeStream();
    this.asking?.abort();
    this.asking = null;
    clearTimeout(this.timer);
    this.blocks.forEach((block) => block.setStatus());
  }

  closeStream() {
    clearTimeout(this.firstEventTimer);
    this.stream?.close();
    this.stream = null;
    this.streamSince = 0; // 0: no stream sends numbers
  }

  askIn(milliseconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), milliseconds * (0.5 + Math.random() / 2));
  }

  retry() {
    this.failures += 1;
    this.askIn(Math.min(MAX_WAIT_MS, 1e3 * 2 ** this.failures));
  }

  async ask() {
    this.asking?.abort();
    clearTimeout(this.timer);
    const control = (this.asking = new AbortController());
    const limit = setTimeout(() => control.abort(), TIMEOUT_MS);
    let numbers, address;
    try {
      const response = await fetch(this.url, { signal: control.signal });
      if (response.ok) {
        const answer = await response.json();
        numbers = new Map(numbersOf(answer.variants));
        address = answer.stream_url;
      }
    } catch {
      /* no usable answer */
    }
    clearTimeout(limit);
    if (this.asking !== control) return; // hidden, or asked anew
    if (this.streamSince && (!numbers || this.agrees(numbers))) return this.askIn(RECHECK_MS);
    this.closeStream();
    if (numbers) {
      this.take(numbers);
      this.listen(address);
    } else {
      this.staleSince ||= new Date(this.updatedAt).toLocaleTimeString(language, { hour: "numeric", minute: "2-digit" });
      this.retry();
      this.draw();
    }
  }

  agrees(numbers) {
    const same = ({ dataset: { variant } }) => numbers.get(variant) === this.numbers.get(variant);
    return [...this.blocks].every((block) => block.lines().every(same));
  }

  listen(address) {
    if (this.silentStreams >= MAX_TRIES) return this.retry();
    this.firstEventTimer = setTimeout(() => this.broken(), TIMEOUT_MS);
    try {
      const stream = (this.stream = new EventSource(address));
      const hear = (name, take) =>
        stream.addEventListener(name, (event) => {
          try {
            if (this.stream === stream) take(JSON.parse(event.data));
          } catch {
            this.broken();
          }
        });
      hear("snapshot", ({ variants }) => {
        this.take(new Map(numbersOf(variants)));
        clearTimeout(this.firstEventTimer);
        this.silentStreams = 0;
        this.streamSince = Date.now();
        this.askIn(RECHECK_MS);
      });
      hear("change", ({ variants, removed }) => {
        const numbers = new Map([...this.numbers, ...numbersOf(variants)]);
        removed.forEach((gid) => numbers.delete(gid));
        this.take(numbers);
      });
      stream.onerror = () => this.stream === stream && this.broken();
    } catch {
      this.broken();
    }
  }

  /* The stream ended, or sent nothing. Its numbers count until the next request fails. */
  broken() {
    if (!this.streamSince) this.silentStreams += 1;
    else if (Date.now() - this.streamSince > STEADY_MS) this.failures = 0;
    this.closeStream();
    this.retry();
  }

  take(numbers) {
    numbers.forEach((number, gid) => number <= 0 && this.wasOut.add(gid));
    this.numbers = numbers;
    this.updatedAt = Date.now();
    this.staleSince = "";
    this.draw();
  }

  draw() {
    this.blocks.forEach((block) => block.draw());
  }
}

class LiveStock extends HTMLElement {
  connectedCallback() {
    try {
      const url = new URL(`${this.dataset.proxy.replace(/\/+$/, "")}/availability`, location.href);
      if (url.origin !== location.origin) return;
      if (!sources.has(url.href)) sources.set(url.href, new Source(url.href));
      this.source = sources.get(url.href);
      this.source.blocks.add(this);
      this.watchTheme();
      this.draw();
      this.source.start();
    } catch {
      this.end();
    }
  }

  disconnectedCallback() {
    this.end();
  }

  end() {
    this.listeners?.abort();
    this.watcher?.disconnect();
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.setStatus();
    this.source?.blocks.delete(this);
    if (!this.source?.blocks.size) this.source?.stop();
  }

  /* Draws when the theme may have chosen another variant. */
  watchTheme() {
    const section = this.closest(".shopify-section");
    this.place = section?.querySelector('[name="id"]') ? section : document.body;
    const soon = () => {
      this.frame ||= requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
    };
    this.watcher = new MutationObserver(soon);
    this.watcher.observe(this.place, { subtree: true, childList: true, attributeFilter: ["value"] });
    this.listeners = new AbortController();
    const { signal } = this.listeners;
    document.addEventListener("change", soon, { signal });
    document.addEventListener("shopify:product:select", (event) => this.selected(event).then(soon, soon), { signal });
  }

  async selected({ product, promise }) {
    if (product.id !== `gid://shopify/Product/${this.dataset.product}`) return;
    const { variant } = await promise;
    this.variant = variant ? variant.id : "";
  }

  /* The variant that the form would put into the cart, or else the one that the theme named last. */
  chosen() {
    for (const { form, type, checked, value } of this.place.querySelectorAll('[name="id"]')) {
      const product = form?.querySelector('[name="product-id"]')?.value;
      const isOurs = product ? product === this.dataset.product : this.place !== document.body;
      if (form && isOurs && (type !== "radio" || checked)) return value && GID + value;
    }
    return this.variant ?? this.dataset.first;
  }

  lines() {
    return [...this.querySelectorAll("[data-variant]")];
  }

  draw() {
    try {
      const chosen = this.chosen();
      this.lines().forEach((line) => {
        if ("follows" in line.dataset) line.dataset.variant = chosen;
        this.show(line);
      });
      this.announce(chosen);
    } catch {
      this.end();
      this.lines().forEach((line) => (line.dataset.state = ""));
    }
  }

  show(line) {
    const [state, text] = this.stateOf(line.dataset.variant);
    if (line.dataset.state !== state) line.dataset.state = state;
    if (line.textContent !== text) line.textContent = text;
  }

  /* The state and the text of a variant: empty if it is in no pool. */
  stateOf(gid) {
    const { dataset } = this;
    const { numbers, staleSince, updatedAt, wasOut } = this.source;
    const number = numbers.get(gid);
    const most = Number(dataset.most) || Infinity;
    const isTooOld = staleSince && ("hides" in dataset || Date.now() - updatedAt > MAX_AGE_MS);
    let state = "in";
    if (number === undefined || isTooOld) state = "";
    else if (number <= 0) state = "out";
    else if (wasOut.has(gid)) state = "back";
    else if (number <= Number(dataset.lowAt)) state = "low";
    else if (!("always" in dataset)) state = "";
    else if (number > most) state = "plenty";
    if (state && staleSince) state = "old";
    const text = dataset[state]?.replaceAll("[n]", Math.min(number, most).toLocaleString(language));
    return [state, text?.replace("[time]", staleSince) || ""];
  }

  /* Announces a new state, not each number. Of a product, one block does. */
  announce(gid) {
    if (this.place.querySelector(`live-stock[data-product="${this.dataset.product}"]`) !== this) return;
    const [state, text] = this.stateOf(gid);
    const [before, stateBefore] = this.announced || [];
    if (this.source.staleSince || (gid === before && (state === stateBefore || this.pause))) return;
    this.announced = [gid, state];
    if (!before || (gid === before && !stateBefore)) return; // it is read with the page
    this.setStatus(text);
    this.pause = setTimeout(() => {
      this.setStatus();
      this.draw();
    }, PAUSE_MS);
  }

  setStatus(text = "") {
    clearTimeout(this.pause);
    this.pause = 0;
    const status = this.querySelector("[role=status]");
    if (status) status.textContent = text;
  }
}

const seen = all((source) => (document.hidden ? source.stop() : source.start()));
document.addEventListener("visibilitychange", seen);
addEventListener("pageshow", seen);
addEventListener("pagehide", all((source) => source.stop()));
addEventListener("online", all((source) => source.awake && !source.streamSince && source.ask()));
customElements.define("live-stock", LiveStock);
})();
