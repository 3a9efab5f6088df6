// Makes the frame with the form as high as its content, which tells its height.
"use strict";

addEventListener("message", (event) => {
  const frame = document.querySelector(".form-frame");
  if (event.source === frame?.contentWindow && event.data.type === "holdfast.height") frame.height = event.data.height;
});
