// Writes the name of a chosen file beside its button: the browser's own field would say it in the browser's language.
"use strict";

for (const input of document.querySelectorAll(".file > input")) {
  const name = input.parentElement.querySelector("output");
  const none = name.textContent;
  const show = () => (name.textContent = input.files[0]?.name ?? none);
  input.addEventListener("change", show);
  // A browser may keep the choice when a page is loaded again.
  show();
}
