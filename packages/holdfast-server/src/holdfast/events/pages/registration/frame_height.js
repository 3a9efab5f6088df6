// In a page of another site: makes each frame of ours as high as its content. The code to paste loads it (`/embed.js`).
// Without it a frame scrolls. The frame says only its height, and only the frame of that content takes it.
(() => {
  "use strict";

  const MAX_HEIGHT = 20_000;
  const { origin } = new URL(document.currentScript.src);
  const frames = () => [...document.querySelectorAll("iframe")];

  addEventListener("message", ({ data, origin: sender, source }) => {
    if (sender !== origin || data?.type !== "holdfast.height") return;
    const { height } = data;
    if (!Number.isInteger(height) || height < 1 || height > MAX_HEIGHT) return;
    const frame = frames().find(({ contentWindow }) => contentWindow === source);
    if (frame) frame.style.height = `${height}px`;
  });

  // A frame that was there before this script has said its height already: it says it again.
  for (const frame of frames()) frame.contentWindow?.postMessage({ type: "holdfast.ask" }, "*");
})();
