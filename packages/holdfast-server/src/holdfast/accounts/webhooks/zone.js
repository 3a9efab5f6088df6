// Gives a form the time zone of the browser, in which people enter its moments. Without the script they are in UTC.
"use strict";

for (const field of document.querySelectorAll("[data-zone]")) {
  if (!field.value) {
    field.value = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const note = document.getElementById("since-note");
    note.textContent = note.textContent.replace("UTC", field.value);
  }
}
