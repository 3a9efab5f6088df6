// Where the clock of the visitor differs from that of an event, tell the time on the visitor's clock instead of the zone.
// The text is short, and the day is left out if it is the same: so it fits the line of the zone, and nothing moves.
for (const place of document.querySelectorAll("[data-moment]")) {
  const moment = new Date(place.dataset.moment);
  const inZone = (zone, style) => new Intl.DateTimeFormat("en", { timeZone: zone, ...style }).format(moment);
  const differs = (style) => inZone(place.dataset.zone, style) !== inZone(undefined, style);
  try {
    if (!differs({ dateStyle: "short", timeStyle: "short" })) continue;
    const day = differs({ dateStyle: "short" }) ? { weekday: "short", day: "numeric", month: "short" } : {};
    const clock = { hour: "numeric", minute: "2-digit", timeZoneName: "short" };
    const format = new Intl.DateTimeFormat(document.documentElement.lang, { ...day, ...clock });
    const end = place.dataset.end ? new Date(place.dataset.end) : undefined;
    place.querySelector("time").textContent = end ? format.formatRange(moment, end) : format.format(moment);
    place.hidden = false;
    place.previousElementSibling.hidden = true;
  } catch {
    // This browser does not know the zone. The time of the event is on the page anyway.
  }
}
