// Shows the button that saves a row only once its number is another one. Without scripts every row has its button. It
// keeps its room, so that nothing moves.
const buttons = document.querySelectorAll("button[data-saves]");

function show(button) {
  const field = document.getElementById(button.dataset.saves);
  const isChanged = field.value !== field.defaultValue || field.ariaInvalid;
  button.style.visibility = isChanged ? "" : "hidden";
}

for (const button of buttons) {
  show(button);
  document.getElementById(button.dataset.saves).addEventListener("input", () => show(button));
}
