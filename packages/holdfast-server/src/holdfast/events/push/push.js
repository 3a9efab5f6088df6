// Asks for a push message when the person moves up from the waiting list: off until the button is pressed.
"use strict";
{
  const place = document.getElementById("push");
  const button = place.querySelector("button");
  const status = place.querySelector("[role=status]");
  const { key, path, worker, on, off, denied, failed } = place.dataset;
  const SCOPE = "/registrations/";
  const known = `push ${path.split("?")[0]}`;

  let isOn = false;

  function show(text = "") {
    button.textContent = isOn ? off : on;
    button.setAttribute("aria-pressed", String(isOn));
    status.textContent = text;
  }

  // Whether the browser still has the subscription that it has sent: a person or the browser may have ended it meanwhile.
  async function isSubscribed() {
    const sent = localStorage.getItem(known);
    if (sent === null) return false;
    const registration = await navigator.serviceWorker.getRegistration(SCOPE);
    const subscription = await registration?.pushManager.getSubscription();
    if (subscription?.endpoint === sent && keyOf(subscription) === key) return true;
    await unsubscribe();
    return false;
  }

  function keyOf(subscription) {
    const bytes = new Uint8Array(subscription.options.applicationServerKey);
    return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
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
    isOn = true;
    return "";
  }

  async function unsubscribe() {
    await send({ endpoint: localStorage.getItem(known), stop: "yes" });
    localStorage.removeItem(known);
    isOn = false;
    return "";
  }

  async function send(fields) {
    const answer = await fetch(path, { method: "POST", body: new URLSearchParams(fields) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
  }

  if ("serviceWorker" in navigator && "PushManager" in window && "Notification" in window && Notification.permission !== "denied") {
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        show(await (isOn ? unsubscribe() : subscribe()));
      } catch {
        show(failed);
      }
      button.disabled = false;
    });
    isSubscribed().catch(() => false).then((answer) => {
      isOn = answer;
      show();
      place.hidden = false;
    });
  }
}
