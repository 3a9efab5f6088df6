// The reference: a search in the index of its operations, and forms that send requests with the reader's own key.
"use strict";

const field = document.getElementById("search");
const entries = [...document.querySelectorAll("[data-words]")];

function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let number = 0;
  for (const entry of entries) {
    const text = `${entry.dataset.words} ${entry.textContent.toLowerCase()}`;
    const fits = words.every((word) => text.includes(word));
    number += fits;
    entry.hidden = !fits;
  }
  for (const part of document.querySelectorAll(".reference main > section")) {
    part.hidden = words.length > 0 && !part.querySelector("[data-words]:not([hidden])");
  }
  const summary = document.getElementById("found");
  const sentence = summary.dataset.found.replace("{number}", number).replace("{all}", entries.length);
  summary.textContent = words.length ? sentence : "";
}

// The index is searched while the reader types. The other pages lead to it, with what was typed.
if (entries.length) {
  field.value = new URLSearchParams(location.search).get("q") ?? "";
  search();
  field.addEventListener("input", search);
  field.form.addEventListener("submit", (event) => event.preventDefault());
}

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
  const heading = document.createElement("h3");
  heading.textContent = title;
  const box = document.createElement("div");
  box.className = "copyable";
  const content = document.createElement("pre");
  content.tabIndex = 0;
  content.setAttribute("role", "group");
  content.setAttribute("aria-label", title);
  content.textContent = text;
  box.append(content);
  form.querySelector(".answer").replaceChildren(heading, box);
}

async function send(form) {
  const method = form.dataset.method;
  const headers = { Accept: "application/json" };
  const key = form.querySelector(".key")?.value.trim();
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
    show(form, `${answer.status} ${answer.statusText} · ${time} ms`, isJson ? JSON.stringify(JSON.parse(text), null, 2) : text || form.dataset.empty);
  } catch {
    show(form, form.dataset.unreached, form.dataset.advice);
  }
}

// The key is entered once: the forms of all operations have it.
const keys = [...document.querySelectorAll(".key")];
for (const input of keys) {
  input.addEventListener("input", () => {
    for (const other of keys) other.value = input.value;
  });
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
