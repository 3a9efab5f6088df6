// Where the clock of the visitor differs from that of an event, tell the time on the visitor's clock instead of the zone.
// The text takes as much room as the line of the zone, so that nothing moves: the day is left out if it is the same, and
// where the line is too narrow, the end too.
for (const place of document.querySelectorAll("[data-moment]")) {
  const moment = new Date(place.dataset.moment);
  const inZone = (zone, style) => new Intl.DateTimeFormat("en", { timeZone: zone, ...style }).format(moment);
  const differs = (style) => inZone(place.dataset.zone, style) !== inZone(undefined, style);
  try {
    if (!differs({ dateStyle: "short", timeStyle: "short" })) continue;
    const day = differs({ dateStyle: "short" }) ? { weekday: "short", day: "numeric", month: "short" } : {};
    const format = new Intl.DateTimeFormat(document.documentElement.lang, { ...day, hour: "numeric", minute: "2-digit" });
    const texts = [format.format(moment)];
    // In German a range says "Uhr" and a moment does not, nor do the times of the page.
    if (place.dataset.end) texts.unshift(format.formatRange(moment, new Date(place.dataset.end)).replace(" Uhr", ""));
    const zone = place.previousElementSibling;
    const height = zone.offsetHeight;
    zone.hidden = true;
    place.hidden = false;
    place.style.minHeight = `${height}px`;
    for (const text of texts) {
      place.querySelector("time").textContent = text;
      if (place.offsetHeight <= height) break;
    }
  } catch {
    // This browser does not know the zone. The time of the event is on the page anyway.
  }
}
