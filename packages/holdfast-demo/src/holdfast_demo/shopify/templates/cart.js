// The sum of a cart, as one types. What is no number counts nothing here; the server says so when the cart is paid.
"use strict";

const cart = document.getElementById("cart");
const money = new Intl.NumberFormat("en", { style: "currency", currency: cart.dataset.currency });

function sum() {
  let cents = 0;
  for (const input of cart.querySelectorAll("[data-cents]")) {
    if (/^[0-9]+$/.test(input.value)) cents += Number(input.value) * Number(input.dataset.cents);
  }
  document.getElementById("total").textContent = money.format(cents / 100);
}

cart.addEventListener("input", sum);
sum();
