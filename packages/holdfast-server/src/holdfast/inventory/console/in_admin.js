// Inside the platform's admin: what went well is told by the admin, as its own pages do.
"use strict";

for (const note of document.querySelectorAll(".note.toast")) {
  if (!window.shopify?.toast) break;
  window.shopify.toast.show(note.textContent.trim());
  note.classList.add("unseen");
}
