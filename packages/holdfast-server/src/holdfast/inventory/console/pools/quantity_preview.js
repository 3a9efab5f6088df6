// Says below the number of a form what it would do. It is a module, so that its names are its own.
const DELAY_MILLISECONDS = 150;

const form = document.querySelector("form[data-previews]"); // the only pool of its unit has none for a transfer

function fields() {
  const typed = new URLSearchParams(new FormData(form));
  typed.delete("once");
  typed.set("do", "preview");
  return typed;
}

function show(page) {
  const fresh = page.getElementById("then");
  if (fresh) document.getElementById("then").replaceChildren(...document.adoptNode(fresh).childNodes);
}

if (form) previewForm(form, { delay: DELAY_MILLISECONDS, fields, show, ignored: ["reason"] });
