// Shows the value of a chart under the pointer, and with the arrow keys. The values stand in the table of the chart.
"use strict";

// In a block, so that its names are not those of another script, such as live.js.
{
  function points(figure) {
    return [...figure.querySelectorAll("tr[data-x]")].reverse();
  }

  function show(figure, index) {
    const every = points(figure);
    const at = Math.max(0, Math.min(every.length - 1, index));
    const point = every[at];
    if (!point) return;
    const svg = figure.querySelector("svg");
    let mark = svg.querySelector("[data-mark]");
    if (!mark) {
      mark = document.createElementNS("http://www.w3.org/2000/svg", "line");
      mark.dataset.mark = "";
      mark.setAttribute("class", "grid");
      mark.setAttribute("y1", "0");
      mark.setAttribute("y2", String(svg.viewBox.baseVal.height - 18));
      svg.append(mark);
    }
    mark.setAttribute("x1", point.dataset.x);
    mark.setAttribute("x2", point.dataset.x);
    figure.dataset.at = String(at);
    const output = figure.querySelector("output");
    output.hidden = false;
    const [when, value, kind] = [...point.cells].map((cell) => cell.textContent.trim());
    output.textContent = `${when}: ${value}${kind ? ` · ${kind}` : ""}`;
  }

  function hide(figure) {
    figure.querySelector("[data-mark]")?.remove();
    figure.querySelector("output").hidden = true;
  }

  // The events reach the document, so that a chart that live.js replaces goes on to work.
  document.addEventListener("pointermove", ({ target, clientX }) => {
    const svg = target.closest("[data-chart] svg[role=img]");
    if (!svg) return;
    const figure = svg.closest("[data-chart]");
    const box = svg.getBoundingClientRect();
    const x = ((clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    // The last point at or before the pointer: a value holds until the next one.
    show(figure, points(figure).findLastIndex((point) => Number(point.dataset.x) <= x));
  });

  document.addEventListener("keydown", ({ target, key }) => {
    const figure = target.closest?.("[data-chart]");
    if (!figure || !target.matches("svg")) return;
    const at = Number(figure.dataset.at ?? points(figure).length - 1);
    if (key === "ArrowLeft") show(figure, at - 1);
    else if (key === "ArrowRight") show(figure, at + 1);
    else if (key === "Escape") hide(figure);
  });
}
