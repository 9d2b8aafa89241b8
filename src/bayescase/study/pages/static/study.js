// Nothing here is needed: it measures times and the window, and counts the seconds of a break.
"use strict";

const timed = document.querySelector("form[data-timed]");
if (timed) {
  const now = () => Math.round(performance.now());
  const set = (name, value) => { timed.elements[name].value = value; };
  let hidden = 0, since = document.hidden ? 0 : null, blurs = 0;
  requestAnimationFrame(() => requestAnimationFrame(() => set("shown_ms", now())));
  const first = () => { if (timed.elements.first_input_ms.value === "") set("first_input_ms", now()); };
  timed.addEventListener("input", first);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) since = now();
    else if (since !== null) { hidden += now() - since; since = null; }
  });
  window.addEventListener("blur", () => { blurs += 1; });
  timed.addEventListener("submit", () => {
    set("submitted_ms", now());
    set("hidden_ms", hidden);
    set("blur_count", blurs);
  });
}

const pause = document.querySelector("form[data-wait]");
if (pause && Number(pause.dataset.wait) > 0) {
  const button = pause.querySelector("button"), count = pause.querySelector(".count");
  const end = performance.now() + Number(pause.dataset.wait), usual = button.textContent;
  button.disabled = true;
  const tick = () => {
    const left = end - performance.now();
    button.textContent = left > -50 ? pause.dataset.count.replace("{n}", Math.max(1, Math.ceil(left / 1000))) : usual;
    if (left > -50) { setTimeout(tick, 100); return; }  // the server's clock decides; do not come too early by a hair
    button.disabled = false;
    count.textContent = pause.dataset.over;
    button.focus();
  };
  tick();
}

const device = document.querySelector("form[data-device]");
if (device) {
  device.addEventListener("submit", () => {
    device.elements.window_width.value = Math.round(innerWidth);
    device.elements.window_height.value = Math.round(innerHeight);
    device.elements.pixel_ratio.value = Math.round(100 * devicePixelRatio);
    device.elements.touch.value = matchMedia("(pointer: coarse)").matches ? 1 : 0;
  });
}

// What follows # in an address is not sent to anybody: there the code comes.
const code = document.querySelector("form[data-code]");
if (code && location.hash.length > 1) {
  code.elements.receipt.value = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
}

// The page of the past that the back button brings may be stale: ask for the current one.
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
