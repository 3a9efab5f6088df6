// In a frame: tells the page around it how high this one is, so that it needs no scroll bar of its own.
"use strict";

const event_id = Number(document.querySelector("main")?.dataset.event) || null;

function tell() {
  const height = Math.ceil(document.documentElement.getBoundingClientRect().height);
  parent.postMessage({ type: "holdfast.height", height, event_id }, "*");
}

if (parent !== window) {
  new ResizeObserver(tell).observe(document.documentElement);
  addEventListener("message", ({ data, source }) => {
    if (source === parent && data?.type === "holdfast.ask") tell();
  });
}

// Browsers do not let a frame have the focus by itself; a script may set it after something was typed here.
document.querySelector("[aria-invalid=true]")?.focus();
