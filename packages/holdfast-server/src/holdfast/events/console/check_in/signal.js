// Tells a verdict by sound and vibration, so that the staff need not look: each kind sounds and feels different.
"use strict";
{
  // Tones as [Hz, seconds], one after the other, and milliseconds of vibration and rest.
  const SIGNALS = {
    good: { wave: "sine", tones: [[660, 0.09], [990, 0.16]], vibration: [80] },
    again: { wave: "triangle", tones: [[520, 0.13], [520, 0.13], [520, 0.13]], vibration: [90, 70, 90, 70, 90] },
    bad: { wave: "square", tones: [[170, 0.5]], vibration: [500] },
  };
  const VOLUME = 0.25;
  const REST_SECONDS = 0.05;
  const MUTED = "check-in muted";
  let audio;

  // Browsers let a page sound only after a touch or a key.
  function wake() {
    audio ??= new AudioContext();
    if (audio.state === "suspended") audio.resume().catch(() => {});
  }

  function play({ wave, tones }) {
    let at = audio.currentTime;
    for (const [frequency, seconds] of tones) {
      const [tone, gain] = [audio.createOscillator(), audio.createGain()];
      tone.type = wave;
      tone.frequency.value = frequency;
      gain.gain.setValueAtTime(VOLUME, at);
      gain.gain.exponentialRampToValueAtTime(0.001, at + seconds);
      tone.connect(gain).connect(audio.destination);
      tone.start(at);
      tone.stop(at + seconds);
      at += seconds + REST_SECONDS;
    }
  }

  function signal(kind) {
    if (!SIGNALS[kind] || localStorage.getItem(MUTED)) return;
    navigator.vibrate?.(SIGNALS[kind].vibration);
    if (audio?.state === "running") play(SIGNALS[kind]);
  }

  function showMuted(button) {
    const state = localStorage.getItem(MUTED) ? "off" : "on";
    for (const text of button.children) text.hidden = text.dataset.sound !== state;
  }

  // Makes a button turn the sound off and on.
  function connectSound(button) {
    for (const kind of ["pointerdown", "keydown"]) document.addEventListener(kind, wake);
    button.addEventListener("click", () => {
      if (localStorage.getItem(MUTED)) localStorage.removeItem(MUTED);
      else localStorage.setItem(MUTED, "yes");
      showMuted(button);
    });
    showMuted(button);
  }

  Object.assign(globalThis, { signal, connectSound });
}
