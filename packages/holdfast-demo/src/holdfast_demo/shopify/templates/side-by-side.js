// Lets what was sold leave the shelf: when the number on the shelf falls, the pictures of what is gone fly to the pack that
// was bought, or up and away. Where one page is seen at a time, its frame is as high as the page.
"use strict";

const STEP_MS = 70; // between two that leave
const FLIGHT_MS = 900;
const MAX_FLYING = 24;

const stock = document.getElementById("stock");
const calm = matchMedia("(prefers-reduced-motion: reduce)");
let bought; // the id of the button that was pressed last
let before = here();

function here() {
  return stock.querySelectorAll(".stock-picture use:not(.sold)").length;
}

function target() {
  const pack = document.getElementById(bought)?.closest("li");
  return pack?.querySelector(".product-picture")?.getBoundingClientRect();
}

function fly(place, number, to) {
  const from = place.getBoundingClientRect();
  const flying = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  flying.setAttribute("viewBox", "0 0 12 16");
  flying.setAttribute("class", "flying");
  flying.setAttribute("aria-hidden", "true");
  const unit = document.createElementNS("http://www.w3.org/2000/svg", "use");
  unit.setAttribute("href", place.getAttribute("href"));
  flying.append(unit);
  Object.assign(flying.style, {
    left: `${from.left}px`,
    top: `${from.top}px`,
    width: `${from.width}px`,
    height: `${from.height}px`,
  });
  document.body.append(flying);
  const x = to ? to.left + to.width / 2 - from.left - from.width / 2 : 0;
  const y = to ? to.top + to.height / 2 - from.top - from.height / 2 : -90;
  const path = [
    { transform: "none", opacity: 1 },
    { transform: `translate(${x * 0.45}px, ${Math.min(y, 0) * 0.5 - 70}px) scale(1.9) rotate(12deg)`, opacity: 1, offset: 0.5 },
    { transform: `translate(${x}px, ${y}px) scale(0.8) rotate(0)`, opacity: to ? 0.9 : 0 },
  ];
  const flight = { duration: FLIGHT_MS, delay: number * STEP_MS, easing: "cubic-bezier(0.4, 0, 0.3, 1)", fill: "both" };
  flying.animate(path, flight).finished.finally(() => flying.remove());
}

new MutationObserver(() => {
  const now = here();
  const left = before - now;
  before = now;
  if (left <= 0 || calm.matches) return;
  const gone = [...stock.querySelectorAll(".stock-picture use.sold")].slice(0, Math.min(left, MAX_FLYING));
  const to = target();
  gone.reverse().forEach((place, number) => fly(place, number, to));
}).observe(stock, { childList: true });

addEventListener("submit", ({ target }) => {
  const button = target.querySelector("button[id^=buy-]");
  if (button) bought = button.id;
});

const narrow = matchMedia("(max-width: 59.99rem)");
const MAX_HEIGHT = 1600; // of a frame; a longer page is scrolled

function fit(frame) {
  const height = frame.contentDocument?.documentElement.scrollHeight;
  frame.style.height = narrow.matches && height ? `${Math.min(height, MAX_HEIGHT)}px` : "";
}

for (const frame of document.querySelectorAll(".view iframe")) {
  const watch = () => new ResizeObserver(() => fit(frame)).observe(frame.contentDocument.body);
  frame.addEventListener("load", watch);
  if (frame.contentDocument?.readyState === "complete") watch();
  narrow.addEventListener("change", () => fit(frame));
}
