// Shows the button that saves a row only once its number is another one. Without scripts every row has its button.
const buttons = document.querySelectorAll("button[data-saves]");

function show(button) {
  const field = document.getElementById(button.dataset.saves);
  button.hidden = field.value === field.defaultValue && !field.ariaInvalid;
}

for (const button of buttons) {
  show(button);
  document.getElementById(button.dataset.saves).addEventListener("input", () => show(button));
}
