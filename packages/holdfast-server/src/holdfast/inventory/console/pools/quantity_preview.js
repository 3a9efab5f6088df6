// Says below the number of a form what it would do: the service computes it from what is typed so far. It is a module, so
// that its names are its own.
const DELAY_MILLISECONDS = 150;

const form = document.querySelector("form[data-previews]"); // the only pool of its unit has none for a transfer
let timer;
let isBusy = false;
let isStale = false;

// One request is on its way at a time: what is typed meanwhile is asked after it.
async function draw() {
  if (isBusy) {
    isStale = true;
    return;
  }
  isBusy = true;
  isStale = false;
  const typed = new URLSearchParams(new FormData(form));
  typed.delete("once");
  typed.set("do", "preview");
  try {
    const answer = await fetch(form.action, { method: "POST", body: typed, redirect: "error" });
    const page = new DOMParser().parseFromString(answer.ok ? await answer.text() : "", "text/html");
    const fresh = page.getElementById("then");
    if (fresh) document.getElementById("then").replaceChildren(...document.adoptNode(fresh).childNodes);
  } catch {
    // Without a connection the line stays as it is.
  }
  isBusy = false;
  if (isStale) await draw();
}

form?.addEventListener("input", (event) => {
  if (event.target.name === "reason") return;
  clearTimeout(timer);
  timer = setTimeout(draw, DELAY_MILLISECONDS);
});
