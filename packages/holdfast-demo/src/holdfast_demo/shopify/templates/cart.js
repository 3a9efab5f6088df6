// What is in a cart and its sums as one types, and buttons for one more and one less. What is no number counts nothing here;
// the server says so when the cart is paid.
"use strict";

const cart = document.getElementById("cart");
const pay = document.getElementById("pay");
const money = new Intl.NumberFormat(document.documentElement.lang, { style: "currency", currency: cart.dataset.currency });

function quantity(input) {
  return /^[0-9]+$/.test(input.value) ? Number(input.value) : 0;
}

function sum() {
  let cents = 0;
  let isEmpty = true;
  for (const input of cart.querySelectorAll("[data-cents]")) {
    const line = quantity(input) * Number(input.dataset.cents);
    cents += line;
    isEmpty &&= !input.value.trim();
    const row = cart.querySelector(`[data-line=${input.id}]`);
    row.hidden = !line;
    row.querySelector("[data-quantity]").textContent = quantity(input);
    row.querySelector("output").textContent = line ? money.format(line / 100) : "";
  }
  document.getElementById("nothing").hidden = Boolean(cents);
  document.getElementById("total").textContent = money.format(cents / 100);
  pay.textContent = cents ? `${cart.dataset.pay} ${money.format(cents / 100)}` : cart.dataset.pay;
  pay.disabled = isEmpty; // what is no number is sent, and answered
}

cart.addEventListener("input", sum);
cart.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-step]");
  if (!button) return;
  const input = button.parentElement.querySelector("input");
  input.value = Math.max(0, quantity(input) + Number(button.dataset.step)) || "";
  sum();
  if (!input.value) button.parentElement.querySelector("[data-step='1']").focus(); // the other one is gone
});
sum();
