// Writes moments without a zone of their own in the zone of the browser, as people say them: "Today, 10:23 PM". The zone is
// that of the reader's own clock, so only the exact moment names it.
"use strict";

const pageLanguage = document.documentElement.lang;
// The page is in one language. The browser may have a variant of this language that writes times in another way.
const timeLocale = navigator.languages.find((candidate) => candidate.split("-")[0] === pageLanguage) ?? pageLanguage;
const clockStyle = { hour: "numeric", minute: "2-digit" };
const exactStyle = { day: "numeric", month: "long", year: "numeric", ...clockStyle };

function written(moment, style) {
  return new Intl.DateTimeFormat(timeLocale, style).format(moment);
}

// A moment in full, with its zone: "EST", or "Germany Time" where the language has only an offset, such as GMT+1.
function exact(moment) {
  const text = written(moment, { ...exactStyle, timeZoneName: "short" });
  return /(GMT|UTC)[-+−]/.test(text) ? written(moment, { ...exactStyle, timeZoneName: "shortGeneric" }) : text;
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

function localize(time) {
  const moment = new Date(time.dateTime);
  let text;
  if (time.dataset.local === "clock") {
    text = written(moment, { ...clockStyle, second: "2-digit" });
  } else if (time.dataset.local === "exact") {
    text = exact(moment);
  } else {
    text = inWords(moment, time.dataset.local);
    time.title = exact(moment);
  }
  if (time.textContent !== text) time.textContent = text;
}

// A part of a page that arrives later is initial here before it is shown.
function localizeTimes(part) {
  for (const time of part.querySelectorAll("time[data-local]")) localize(time);
}

// A browser that runs this script in the head paints the page in pieces. Each piece is changed before it is painted.
const localized = new WeakSet();

function localizeArrived(changes) {
  // The text of a time can arrive after its tag.
  for (const { target } of changes) localized.delete(target instanceof Text ? target.parentNode : target);
  for (const time of document.querySelectorAll("time[data-local]")) {
    if (!localized.has(time)) localize(time);
    localized.add(time);
  }
  arriving.takeRecords(); // The changes of this function itself.
}

const arriving = new MutationObserver(localizeArrived);
arriving.observe(document, { subtree: true, childList: true, characterData: true });
document.addEventListener("DOMContentLoaded", () => {
  localizeArrived(arriving.takeRecords());
  arriving.disconnect();
});
