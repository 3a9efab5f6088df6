// Where the clock of the visitor differs from that of an event, tell the time on the visitor's clock as well.
for (const place of document.querySelectorAll("[data-moment]")) {
  const moment = new Date(place.dataset.moment);
  const offset = (zone) => new Intl.DateTimeFormat("en", { timeZone: zone, dateStyle: "short", timeStyle: "short" }).format(moment);
  try {
    if (offset(place.dataset.zone) === offset()) continue;
    const format = new Intl.DateTimeFormat(document.documentElement.lang, {
      weekday: "long", day: "numeric", month: "long", year: "numeric", hour: "numeric", minute: "2-digit", timeZoneName: "short",
    });
    const end = place.dataset.end ? new Date(place.dataset.end) : undefined;
    place.querySelector("time").textContent = end ? format.formatRange(moment, end) : format.format(moment);
    place.hidden = false;
  } catch {
    // This browser does not know the zone. The time of the event is on the page anyway.
  }
}
