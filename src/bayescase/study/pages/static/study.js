// Nothing here is needed: it measures times, and counts the seconds of a break.
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
  const end = performance.now() + Number(pause.dataset.wait);
  button.disabled = true;
  const tick = () => {
    const left = end - performance.now();
    button.textContent = left > -50 ? `Continue in ${Math.max(1, Math.ceil(left / 1000))} s` : "Continue";
    if (left > -50) { setTimeout(tick, 100); return; }  // the server's clock decides; do not come too early by a hair
    button.disabled = false;
    count.textContent = "You can go on.";
    button.focus();
  };
  tick();
}

// The page of the past that the back button brings may be stale: ask for the current one.
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
