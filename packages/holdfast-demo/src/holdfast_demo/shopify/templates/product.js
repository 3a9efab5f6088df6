// Says on the button what the chosen number of a pack costs. Without this, the price of one pack stands there.
"use strict";

const quantity = document.getElementById("quantity");
const button = quantity.form.querySelector("[data-currency]");

function showPrices() {
  const count = quantity.validity.valid ? quantity.valueAsNumber : 1;
  const money = new Intl.NumberFormat(document.documentElement.lang, { style: "currency", currency: button.dataset.currency });
  for (const price of button.querySelectorAll("[data-cents]")) {
    price.textContent = money.format((count * price.dataset.cents) / 100);
  }
}

if (button) {
  quantity.addEventListener("input", showPrices);
  showPrices();
}
