// Says on the button what the chosen number of a pack costs, and lets a pack be chosen as long as there is any of it.
// Without this, the price of one pack stands there, and a pack that is sold out stays so until the page is loaded again.
"use strict";

const quantity = document.getElementById("quantity");
const { form } = quantity;
const button = form.querySelector("[data-currency]");

function showPrices() {
  const count = quantity.validity.valid ? quantity.valueAsNumber : 1;
  const money = new Intl.NumberFormat(document.documentElement.lang, { style: "currency", currency: button.dataset.currency });
  for (const price of button.querySelectorAll("[data-cents]")) {
    price.textContent = money.format((count * price.dataset.cents) / 100);
  }
}

// By the block of the app, where it shows a number of now; else by the number of the shop.
function isSoldOut(pack) {
  const state = pack.querySelector(".live-stock__line")?.dataset.state;
  return state && state !== "old" ? state === "out" : pack.querySelector("[data-left]").dataset.left <= 0;
}

function showStock() {
  for (const pack of form.querySelectorAll(".pack")) {
    const isOut = isSoldOut(pack);
    pack.classList.toggle("sold-out", isOut);
    pack.querySelector("input").disabled = isOut;
  }
  button.disabled = form.querySelector(".pack > :checked").disabled;
}

quantity.addEventListener("input", showPrices);
form.addEventListener("change", showStock);
new MutationObserver(showStock).observe(form, { subtree: true, childList: true, attributeFilter: ["data-state"] });
showPrices();
showStock();
