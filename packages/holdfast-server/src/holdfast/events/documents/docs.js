// The reference: a search in its operations and objects, and forms that send requests with the reader's own key.
"use strict";

const tools = document.getElementById("tools");
const count = document.getElementById("found");
const sections = [...document.querySelectorAll(".reference main > section")];
const links = new Map([...document.querySelectorAll(".reference nav li a")].map((link) => [link.hash.slice(1), link]));

tools.addEventListener("submit", (event) => event.preventDefault());

// Each section with its text, read once.
const texts = new Map(sections.map((section) => [section, section.textContent.toLowerCase()]));

document.getElementById("search").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  let number = 0;
  for (const [section, text] of texts) {
    const fits = words.every((word) => text.includes(word));
    number += fits;
    section.hidden = !fits;
    const link = links.get(section.id);
    if (link) link.parentElement.hidden = !fits;
  }
  for (const heading of document.querySelectorAll(".reference main > h2")) {
    let next = heading.nextElementSibling;
    while (next?.hidden && next.tagName === "SECTION") next = next.nextElementSibling;
    heading.hidden = next?.tagName !== "SECTION";
  }
  count.textContent = words.length ? `${number} of ${sections.length} parts have all these words.` : "";
});

// The address of a request: parameters that are left empty are left out.
function address(form) {
  const query = new URLSearchParams();
  let path = form.dataset.path;
  for (const input of form.querySelectorAll("[data-in]")) {
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.value) query.append(input.name, input.value);
  }
  return query.size ? `${path}?${query}` : path;
}

function show(form, title, text) {
  const heading = document.createElement("h4");
  heading.textContent = title;
  const content = document.createElement("pre");
  content.tabIndex = 0;
  content.textContent = text;
  form.querySelector(".answer").replaceChildren(heading, content);
}

async function send(form) {
  const method = form.dataset.method;
  const headers = { Accept: "application/json" };
  const key = document.getElementById("key").value.trim();
  if (key) headers["X-API-Key"] = key;
  const body = form.elements.body?.value;
  if (body) headers["Content-Type"] = "application/json";
  const started = performance.now();
  try {
    // Without cookies: a request counts as the key's alone.
    const answer = await fetch(address(form), { method, headers, body, credentials: "omit", cache: "no-store" });
    const time = Math.round(performance.now() - started);
    const text = await answer.text();
    const isJson = answer.headers.get("Content-Type")?.includes("json");
    show(form, `${answer.status} ${answer.statusText} in ${time} ms`, isJson ? JSON.stringify(JSON.parse(text), null, 2) : text || "No body.");
  } catch {
    show(form, "No answer", "The server cannot be reached. Check your connection and send the request again.");
  }
}

for (const details of document.querySelectorAll(".try")) {
  const form = details.querySelector("form");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    await send(form);
    button.disabled = false;
  });
}
