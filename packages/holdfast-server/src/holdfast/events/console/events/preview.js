// Keeps the preview of an event beside its form up to date. It is a module, so that its names are its own.
const DELAY_MILLISECONDS = 400;
// The preview shows no text, and one photo.
const UNSHOWN_FIELDS = ["body", "files", "once"];

const form = document.querySelector("form[data-preview]");

function show(page) {
  const fresh = page.getElementById("preview");
  if (!fresh) return;
  document.getElementById("preview").replaceWith(document.adoptNode(fresh));
  proposeWaitingList(fresh.querySelector("[data-waiting]")?.dataset.waiting);
}

// The empty field of a new event shows what the service proposes for so many seats.
function proposeWaitingList(places) {
  const field = document.getElementById("waitinglist_capacity");
  if (places && field.placeholder && !field.value) field.placeholder = places;
}

function fields() {
  const typed = new URLSearchParams();
  let hasPhoto = false;
  for (const [name, value] of new FormData(form)) {
    const isPhoto = /^photo\d/.test(name);
    if (UNSHOWN_FIELDS.includes(name) || (isPhoto && hasPhoto)) continue;
    hasPhoto ||= isPhoto;
    typed.set(name, value);
  }
  typed.set("do", "preview_part");
  return typed;
}

const draw = previewForm(form, { delay: DELAY_MILLISECONDS, fields, show });

// The first event of an organizer takes place where the browser is, unless the organizer says otherwise.
const zone = document.getElementById("timezone");
const more = document.getElementById("more");

function nameZone() {
  document.getElementById("zone-name").textContent = zone.selectedOptions[0]?.text ?? zone.value;
}

if (form.dataset.preview === "first" && !zone.value) {
  zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone.selectedIndex < 0) zone.value = "";
  if (zone.value) {
    nameZone();
    document.getElementById("zone-origin").hidden = false;
    draw();
  }
}
zone.addEventListener("change", () => {
  nameZone();
  document.getElementById("zone-origin")?.remove();
});
document.querySelector('a[href="#more"]').addEventListener("click", () => {
  more.open = true;
  zone.focus();
});

