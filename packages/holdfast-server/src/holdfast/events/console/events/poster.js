// Prints the poster.
"use strict";

document.querySelector("[data-prints]").addEventListener("click", () => print());
