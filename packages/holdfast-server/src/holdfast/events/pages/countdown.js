// Shows how much time is left where a page says until when. Without scripts the page says only that.
"use strict";

// Seconds as a clock shows them: 14:05, or 11:59:05.
function clock(seconds) {
  const parts = [Math.floor(seconds / 60) % 60, seconds % 60];
  if (seconds >= 3600) parts.unshift(Math.floor(seconds / 3600));
  return parts.map((part, place) => String(part).padStart(place ? 2 : 1, "0")).join(":");
}

// The time that is left, by the clock of the server.
const skew = new Map();
let over = false;
function count() {
  for (const line of document.querySelectorAll("[data-until]")) {
    if (!skew.has(line.dataset.now)) skew.set(line.dataset.now, Date.parse(line.dataset.now) - Date.now());
    const left = Math.max(0, Math.round((Date.parse(line.dataset.until) - Date.now() - skew.get(line.dataset.now)) / 1000));
    line.querySelector(".left").textContent = clock(left);
    line.hidden = false;
    // The page of an outcome looks again by itself. Another one is loaded again, and its button is gone then.
    if (left === 0 && !over && !document.querySelector("main[data-refresh]")) {
      over = true;
      const { page } = document.querySelector("main").dataset;
      setTimeout(() => (page ? location.replace(page) : location.reload()), 2000);
    }
  }
}
count();
setInterval(count, 500);
