// Writes moments without a zone of their own in the zone of the browser, as people say them: "Today, 10:23 PM EST".
"use strict";

const pageLanguage = document.documentElement.lang;
// The page is in one language. Of the languages of the browser, the one for it may write times in another way.
const timeLocale = navigator.languages.find((candidate) => candidate.split("-")[0] === pageLanguage) ?? pageLanguage;
const clockStyle = { hour: "numeric", minute: "2-digit", timeZoneName: "short" };
const exactStyle = { day: "numeric", month: "long", year: "numeric", ...clockStyle };

function written(moment, style) {
  return new Intl.DateTimeFormat(timeLocale, style).format(moment);
}

// Days from today to the day of a moment: -1 for yesterday.
function daysFromToday(moment) {
  const midnight = (day) => Date.UTC(day.getFullYear(), day.getMonth(), day.getDate());
  return (midnight(moment) - midnight(new Date())) / 86_400_000;
}

function inWords(moment, place) {
  const days = daysFromToday(moment);
  const sameYear = moment.getFullYear() === new Date().getFullYear();
  let day = written(moment, { day: "numeric", month: "long", year: sameYear ? undefined : "numeric" });
  if (Math.abs(days) <= 1) {
    day = new Intl.RelativeTimeFormat(pageLanguage, { numeric: "auto" }).format(days, "day");
    if (place === "first") day = day.charAt(0).toLocaleUpperCase(pageLanguage) + day.slice(1);
  }
  return `${day}, ${written(moment, clockStyle)}`;
}

// A part of a page that arrives later is given here before it is shown.
function localizeTimes(part) {
  for (const time of part.querySelectorAll("time[data-local]")) {
    const moment = new Date(time.dateTime);
    if (time.dataset.local === "clock") {
      time.textContent = written(moment, { ...clockStyle, second: "2-digit" });
    } else if (time.dataset.local === "exact") {
      time.textContent = written(moment, exactStyle);
    } else {
      time.textContent = inWords(moment, time.dataset.local);
      time.title = written(moment, exactStyle);
    }
  }
}

// A field takes a moment in UTC. Below it stands the same moment on the clock of the visitor.
function tellClock(note) {
  const field = document.getElementById(note.dataset.clockOf);
  const tell = () => {
    const moment = new Date(`${field.value}Z`);
    note.hidden = Number.isNaN(moment.getTime());
    if (!note.hidden) note.querySelector("time").textContent = written(moment, exactStyle);
  };
  field.addEventListener("input", tell);
  tell();
}

localizeTimes(document);
for (const note of document.querySelectorAll("[data-clock-of]")) tellClock(note);
