// Keeps the preview of a form up to date: the service draws it from what is typed so far. The script of a page calls
// `previewForm`.
"use strict";

// form     the form
// delay    milliseconds after the last key until the preview is drawn
// fields   what is sent, as a function that returns a URLSearchParams
// show     puts what is new into the page; it gets the page that the service answers
// ignored  the names of fields that change nothing in the preview
//
// Returns the function that draws the preview at once. One request is on its way at a time: what is typed in the meantime is
// drawn after it.
globalThis.previewForm = (form, { delay, fields, show, ignored = [] }) => {
  let timer;
  let isBusy = false;
  let isStale = false;

  async function draw() {
    if (isBusy) {
      isStale = true;
      return;
    }
    isBusy = true;
    isStale = false;
    try {
      const answer = await fetch(form.action, { method: "POST", body: fields(), redirect: "error" });
      if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      // Without a connection the last preview stays.
    }
    isBusy = false;
    if (isStale) await draw();
  }

  form.addEventListener("input", ({ target }) => {
    if (ignored.includes(target.name)) return;
    clearTimeout(timer);
    timer = setTimeout(draw, delay);
  });
  return draw;
};
