// Copies the text that a button names; where the browser does not allow that, marks it so that it can be copied.
"use strict";

for (const button of document.querySelectorAll("button[data-copies]")) {
  const text = document.getElementById(button.dataset.copies);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = button.dataset.done;
      button.removeAttribute("aria-label"); // else screen readers go on reading the old name
    } catch {
      text.closest("details")?.setAttribute("open", "");
      getSelection().selectAllChildren(text);
    }
  });
}
