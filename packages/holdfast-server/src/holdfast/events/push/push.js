// Asks for a push message when the person moves up from the waiting list: off until the button is pressed.
"use strict";
{
  const place = document.getElementById("push");
  const button = place.querySelector("button");
  const status = place.querySelector("[role=status]");
  const { key, path, worker, on, off, denied, failed } = place.dataset;
  const SCOPE = "/registrations/";
  const known = `push ${path.split("?")[0]}`;

  const isKnown = () => localStorage.getItem(known) !== null;

  function show(text = "") {
    button.textContent = isKnown() ? off : on;
    button.setAttribute("aria-pressed", String(isKnown()));
    status.textContent = text;
  }

  async function subscribe() {
    if ((await Notification.requestPermission()) !== "granted") return denied;
    const registration = await navigator.serviceWorker.register(worker, { scope: SCOPE });
    await navigator.serviceWorker.ready;
    const options = { userVisibleOnly: true, applicationServerKey: key };
    let subscription;
    try {
      subscription = await registration.pushManager.subscribe(options);
    } catch (error) {
      if (error.name !== "InvalidStateError") throw error;
      // The browser has subscribed to an earlier key of this service.
      await (await registration.pushManager.getSubscription())?.unsubscribe();
      subscription = await registration.pushManager.subscribe(options);
    }
    const { endpoint, keys } = subscription.toJSON();
    await send({ endpoint, p256dh: keys.p256dh, auth: keys.auth, sender_key: key });
    localStorage.setItem(known, endpoint);
    return "";
  }

  async function unsubscribe() {
    await send({ endpoint: localStorage.getItem(known), stop: "yes" });
    localStorage.removeItem(known);
    return "";
  }

  async function send(fields) {
    const answer = await fetch(path, { method: "POST", body: new URLSearchParams(fields) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
  }

  if ("serviceWorker" in navigator && "PushManager" in window && "Notification" in window && Notification.permission !== "denied") {
    place.hidden = false;
    show();
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        show(await (isKnown() ? unsubscribe() : subscribe()));
      } catch {
        show(failed);
      }
      button.disabled = false;
    });
  }
}
