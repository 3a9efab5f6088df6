// Lets the box in the head of the table tick all boxes of the page. The list is reloaded while it is open: nothing
// inside is changed, since live.js compares it with what comes.
"use strict";
{
  const part = document.getElementById("live");
  const boxes = () => [...part.querySelectorAll("tbody input[type=checkbox]")];

  function showState() {
    const all = document.getElementById("choose-all");
    if (!all) return;
    const chosen = boxes().filter((box) => box.checked).length;
    all.checked = chosen === boxes().length;
    all.indeterminate = chosen > 0 && !all.checked;
  }

  part.addEventListener("change", ({ target }) => {
    if (target.id === "choose-all") for (const box of boxes()) box.checked = target.checked;
    showState();
  });
  new MutationObserver(showState).observe(part, { childList: true });
  showState();
}
