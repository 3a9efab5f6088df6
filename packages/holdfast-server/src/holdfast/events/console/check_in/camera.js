// Reads QR codes with the camera: by the browser where it can, else by our own decoder.
"use strict";
{
  const LOOK_INTERVAL_MS = 120;
  const LONGER_SIDE = 960;

  async function detector() {
    // Chromium has it on Android and macOS; Safari and Firefox have none.
    const formats = (await globalThis.BarcodeDetector?.getSupportedFormats().catch(() => [])) ?? [];
    if (!formats.includes("qr_code")) return ownDecoder();
    const reader = new BarcodeDetector({ formats: ["qr_code"] });
    return async (video) => (await reader.detect(video))[0]?.rawValue ?? null;
  }

  function ownDecoder() {
    const canvas = document.createElement("canvas");
    const context = canvas.getContext("2d", { willReadFrequently: true });
    return async (video) => {
      const scale = Math.min(1, LONGER_SIDE / Math.max(video.videoWidth, video.videoHeight));
      canvas.width = Math.round(video.videoWidth * scale);
      canvas.height = Math.round(video.videoHeight * scale);
      context.drawImage(video, 0, 0, canvas.width, canvas.height);
      return readQr(context.getImageData(0, 0, canvas.width, canvas.height));
    };
  }

  // Shows the camera in a video element, and calls `onText` with the text of each code. Returns how to stop it.
  async function watch(video, onText) {
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: false,
      video: { facingMode: "environment", width: { ideal: 1280 }, height: { ideal: 720 } },
    });
    video.srcObject = stream;
    await video.play();
    const read = await detector();
    let timer;
    let isOver = false;
    async function look() {
      try {
        const text = video.videoWidth && !document.hidden ? await read(video) : null;
        if (text && !isOver) onText(text);
      } finally {
        if (!isOver) timer = setTimeout(look, LOOK_INTERVAL_MS);
      }
    }
    look();
    return () => {
      isOver = true;
      clearTimeout(timer);
      for (const track of stream.getTracks()) track.stop();
      video.srcObject = null;
    };
  }

  globalThis.watchCamera = watch;
}
