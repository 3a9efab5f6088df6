// Tells the app in the frame who looks at it, when its script asks.
const frame = document.querySelector("iframe");
const app = new URL(frame.dataset.app).origin;

addEventListener("message", async (event) => {
  if (event.origin !== app || event.source !== frame.contentWindow || event.data?.wants !== "id_token") return;
  const answer = await fetch(frame.dataset.tokens);
  const { token } = await answer.json();
  frame.contentWindow.postMessage({ id_token: token }, app);
});
