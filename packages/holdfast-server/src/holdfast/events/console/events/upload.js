// Sends photos as soon as they are chosen or dropped: each by itself, with the form around them, one after the other.
"use strict";

const MAX_FILE_BYTES = 5_000_000;
const PREVIEW_PIXELS = 160;

const area = document.querySelector("[data-uploads]");
const form = area.closest("form");
const input = area.querySelector("input[type=file]");
const sending = area.querySelector(".sending");
const queue = [];
let isBusy = false;
let submitter; // the button that was pressed while photos were being sent

function choose(files) {
  for (const file of files) {
    const row = area.querySelector("template").content.firstElementChild.cloneNode(true);
    row.querySelector("bdi").textContent = file.name;
    sending.append(row);
    queue.push([file, row]);
  }
  document.getElementById("refused")?.remove();
  sending.hidden = !sending.children.length;
  if (!isBusy) work();
}

async function work() {
  isBusy = true;
  let allSent = true;
  while (queue.length) {
    const [file, row] = queue.shift();
    const reason = file.size > MAX_FILE_BYTES ? area.dataset.large : await send(file, row);
    say(`${file.name} ${reason || area.dataset.sent}`);
    if (reason) {
      allSent = false;
      row.querySelector(".error").textContent = reason;
      row.querySelector("progress").remove();
    } else row.remove();
  }
  sending.hidden = !sending.children.length;
  isBusy = false;
  if (submitter && allSent) form.requestSubmit(submitter);
  submitter = undefined;
}

// Sends one file and shows what the answer shows. Returns why the file was refused, or nothing.
async function send(file, row) {
  const preview = show(file, row.querySelector("canvas"));
  const body = new FormData(form);
  body.delete(input.name);
  body.set("do", "upload");
  body.append(input.name, file);
  const answer = await post(body, row.querySelector("progress"));
  await preview;
  const fresh = answer?.getElementById("photos");
  if (!fresh) return area.dataset.failed;
  const before = document.getElementById("photos");
  for (const box of before.querySelectorAll("input:not(:checked)[type=checkbox]"))
    fresh.querySelector(`input[value="${box.value}"]`)?.removeAttribute("checked");
  before.replaceWith(document.adoptNode(fresh));
  form.dispatchEvent(new Event("input"));
  return answer.querySelector("#refused li")?.lastElementChild?.textContent;
}

// The page that answers a form; null if there is none, or if it is none of ours.
function post(body, progress) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.responseType = "document";
    request.upload.onprogress = (event) => {
      progress.value = event.loaded / event.total;
    };
    request.onload = () => resolve(request.response);
    request.onerror = request.onabort = request.ontimeout = () => resolve(null);
    request.send(body);
  });
}

// Draws a small picture of a file. A file that is no picture has none; the answer says what is wrong with it.
async function show(file, canvas) {
  try {
    const picture = await createImageBitmap(file, { resizeWidth: PREVIEW_PIXELS, resizeQuality: "medium" });
    canvas.width = picture.width;
    canvas.height = picture.height;
    canvas.getContext("2d").drawImage(picture, 0, 0);
    picture.close();
  } catch {}
}

function say(text) {
  area.querySelector("[role=status]").textContent = text;
}

input.addEventListener("change", () => {
  choose([...input.files]);
  input.value = "";
});
form.addEventListener("submit", (event) => {
  if (!isBusy) return;
  event.preventDefault();
  submitter = event.submitter;
  say(area.dataset.wait);
});
addEventListener("beforeunload", (event) => {
  if (isBusy) event.preventDefault();
});

// Files may be dropped anywhere on the page, so that none is opened instead of the page by mistake.
for (const name of ["dragenter", "dragover", "drop", "dragleave"])
  document.addEventListener(name, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    area.classList.toggle("dropping", name === "dragenter" || name === "dragover");
    if (name !== "dragleave") event.preventDefault();
    if (name === "drop") choose([...event.dataTransfer.files]);
  });
