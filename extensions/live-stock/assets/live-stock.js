/* The live number of variants. All blocks of a page share a source: it asks the app proxy, follows the stream that the
 * answer names, and asks again, later each time, if that ends or never begins. A hidden page asks nothing. */
(() => {
"use strict";
if (customElements.get("live-stock")) return;

const PATIENCE = 10e3; // for an answer, and for the first event of a stream
const STEADY = 30e3; // a stream that lasted so long was a good one
const LONGEST = 60e3; // between two questions while there is no stream
const LOOK = 300e3; // between two looks whether a silent stream still tells all
const TRIES = 8; // streams that tell nothing, before no further one is tried
const KEPT = 600e3; // how long an old number may be shown
const PAUSE = 10e3; // between two announcements about a variant
const GID = "gid://shopify/ProductVariant/";

const numbersOf = (map) => Object.entries(map).filter(([, number]) => Number.isInteger(number));
let language = [];
try {
  language = Intl.getCanonicalLocales(document.documentElement.lang);
} catch {
  // The page does not say it: numbers are written as the browser does.
}
const sources = new Map();
const all = (act) => () => sources.forEach(act);

class Source {
  constructor(url) {
    this.url = url;
    this.blocks = new Set();
    this.numbers = new Map();
    this.wasOut = new Set(); // variants that were sold out while this page was there
    this.at = 0; // when the numbers were right
    this.old = ""; // that time, if nobody answers now
    this.rest();
  }

  wake() {
    if (this.awake || document.hidden || !this.blocks.size) return;
    this.awake = true;
    this.ask();
  }

  rest() {
    this.awake = false;
    this.trouble = this.silent = 0;
    this.hangUp();
    this.asking?.abort();
    this.asking = null;
    clearTimeout(this.timer);
    this.blocks.forEach((block) => block.hush());
  }

  hangUp() {
    clearTimeout(this.late);
    this.stream?.close();
    this.stream = null;
    this.since = 0; // when the stream began to tell; 0: it does not
  }

  again(milliseconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), milliseconds * (0.5 + Math.random() / 2));
  }

  later() {
    this.trouble += 1;
    this.again(Math.min(LONGEST, 1e3 * 2 ** this.trouble));
  }

  async ask() {
    this.asking?.abort();
    clearTimeout(this.timer);
    const control = (this.asking = new AbortController());
    const limit = setTimeout(() => control.abort(), PATIENCE);
    let numbers, address;
    try {
      const response = await fetch(this.url, { signal: control.signal });
      if (response.ok) {
        const answer = await response.json();
        numbers = new Map(numbersOf(answer.variants));
        address = answer.stream_url;
      }
    } catch {
      // Nobody answered as it should be.
    }
    clearTimeout(limit);
    if (this.asking !== control) return; // the page is hidden, or asked anew
    if (this.since && (!numbers || this.agrees(numbers))) return this.again(LOOK);
    this.hangUp();
    if (numbers) {
      this.take(numbers);
      this.listen(address);
    } else {
      this.old ||= new Date(this.at).toLocaleTimeString(language, { hour: "numeric", minute: "2-digit" });
      this.later();
      this.draw();
    }
  }

  agrees(numbers) {
    const same = ({ dataset: { variant } }) => numbers.get(variant) === this.numbers.get(variant);
    return [...this.blocks].every((block) => block.lines().every(same));
  }

  listen(address) {
    if (this.silent >= TRIES) return this.later();
    this.late = setTimeout(() => this.broken(), PATIENCE);
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
        clearTimeout(this.late);
        this.silent = 0;
        this.since = Date.now();
        this.again(LOOK);
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

  /* The stream ended, or told nothing. Its numbers count until the next question fails. */
  broken() {
    if (!this.since) this.silent += 1;
    else if (Date.now() - this.since > STEADY) this.trouble = 0;
    this.hangUp();
    this.later();
  }

  take(numbers) {
    numbers.forEach((number, gid) => number <= 0 && this.wasOut.add(gid));
    this.numbers = numbers;
    this.at = Date.now();
    this.old = "";
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
      this.follow();
      this.draw();
      this.source.wake();
    } catch {
      this.end();
    }
  }

  disconnectedCallback() {
    this.end();
  }

  end() {
    this.ends?.abort();
    this.watcher?.disconnect();
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.hush();
    this.source?.blocks.delete(this);
    if (!this.source?.blocks.size) this.source?.rest();
  }

  /* Draw whenever the theme may have chosen another variant. */
  follow() {
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
    this.ends = new AbortController();
    const { signal } = this.ends;
    document.addEventListener("change", soon, { signal });
    document.addEventListener("shopify:product:select", (event) => this.selected(event).then(soon, soon), { signal });
  }

  /* The platform's own event. */
  async selected({ product, promise }) {
    if (product.id !== `gid://shopify/Product/${this.dataset.product}`) return;
    const { variant } = await promise;
    this.told = variant ? variant.id : "";
  }

  /* The variant that the product's form would put into the cart; else the one that the theme named last. */
  chosen() {
    for (const { form, type, checked, value } of this.place.querySelectorAll('[name="id"]')) {
      const product = form?.querySelector('[name="product-id"]')?.value;
      const isOurs = product ? product === this.dataset.product : this.place !== document.body;
      if (form && isOurs && (type !== "radio" || checked)) return value && GID + value;
    }
    return this.told ?? this.dataset.first;
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
    const [state, text] = this.said(line.dataset.variant);
    if (line.dataset.state !== state) line.dataset.state = state;
    if (line.textContent !== text) line.textContent = text;
  }

  /* The state of a variant, and its text: nothing for one that is in no pool. */
  said(gid) {
    const { source, dataset } = this;
    const number = source.numbers.get(gid);
    const most = Number(dataset.most) || Infinity;
    let state = "in";
    if (number === undefined || (source.old && ("hides" in dataset || Date.now() - source.at > KEPT))) state = "";
    else if (number <= 0) state = "out";
    else if (source.wasOut.has(gid)) state = "back";
    else if (number <= Number(dataset.lowAt)) state = "low";
    else if (!("always" in dataset)) state = "";
    else if (number > most) state = "plenty";
    if (state && source.old) state = "old";
    const text = dataset[state]?.replaceAll("[n]", Math.min(number, most).toLocaleString(language));
    return [state, text?.replace("[time]", source.old) || ""];
  }

  /* Tell those who listen a new state, not each number. */
  announce(gid) {
    const [state, text] = this.said(gid);
    const [before, stateBefore] = this.news || [];
    if (this.source.old || (gid === before && (state === stateBefore || this.pause))) return;
    this.news = [gid, state];
    if (!before || (gid === before && !stateBefore)) return; // it is read with the page
    this.hush();
    this.querySelector("[role=status]").textContent = text;
    this.pause = setTimeout(() => {
      this.hush();
      this.draw();
    }, PAUSE);
  }

  hush() {
    clearTimeout(this.pause);
    this.pause = 0;
    const said = this.querySelector("[role=status]");
    if (said) said.textContent = "";
  }
}

const seen = all((source) => (document.hidden ? source.rest() : source.wake()));
document.addEventListener("visibilitychange", seen);
addEventListener("pageshow", seen);
addEventListener("pagehide", all((source) => source.rest()));
addEventListener("online", all((source) => source.awake && !source.since && source.ask()));
customElements.define("live-stock", LiveStock);
})();
