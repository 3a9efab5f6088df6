// Sends the platform's word for who is there, so that a session begins.
(async () => {
  const form = document.querySelector("form");
  form.elements.id_token.value = await window.shopify.idToken();
  form.submit();
})();
