// Nothing here is needed: it brings the counts up to date.
"use strict";

const live = document.querySelector("[data-live]");
if (live) {
  live.hidden = false;
  const wanted = live.querySelector("input");
  setInterval(async () => {
    if (!wanted.checked || document.hidden) return;
    const answer = await fetch(live.dataset.live, { credentials: "same-origin" }).catch(() => null);
    if (answer && answer.ok) document.querySelector("#counts").innerHTML = await answer.text();
  }, 15000);
}
