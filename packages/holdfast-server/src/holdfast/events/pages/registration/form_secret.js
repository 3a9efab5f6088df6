// Adds a secret to the registration form: a visitor who sends the same form twice, such as by a double click, sees the
// outcome again, others do not. The page itself is the same for all visitors, because caches keep it. The entry of the
// page in the history of the tab keeps the secret, so it is the same after reloading the page and after going back to it.
"use strict";

const { formSecret = newSecret() } = history.state ?? {};
history.replaceState({ ...history.state, formSecret }, "");

function newSecret() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

document.addEventListener("formdata", ({ formData }) => {
  if (!formData.has("form_secret")) formData.set("form_secret", formSecret);
});
