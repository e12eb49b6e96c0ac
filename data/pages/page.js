// Renews the page every few seconds while it is looked at. Without it everything works,
// and is as fresh as it was when it was loaded.
"use strict";

(() => {
  const EVERY_MS = 5000;
  const button = document.getElementById("renewal");
  if (!button || !document.body.dataset) return;
  let tag = "";

  const isOn = () => button.getAttribute("aria-pressed") === "true";
  const isBusy = () => {
    const active = document.activeElement;
    const isTyping = active && active.matches("input, select, textarea");
    const selection = document.getSelection();
    return document.hidden || isTyping || (selection && !selection.isCollapsed);
  };

  const renew = (text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const before = document.getElementById("main");
    const after = fresh.getElementById("main");
    if (!after) return;
    // What was opened stays open, and whoever goes by keyboard stays where they were.
    for (const open of before.querySelectorAll("details[open][id]")) {
      const same = after.querySelector(`#${CSS.escape(open.id)}`);
      if (same) same.open = true;
    }
    const places = [...before.querySelectorAll("a, summary, button, [tabindex]")];
    const place = places.indexOf(document.activeElement);
    const live = before.querySelector("[aria-live]");
    const words = after.querySelector("[aria-live]");
    before.replaceChildren(...after.childNodes);
    if (live && words) {
      // The element that is read out must be the one that was there before.
      words.replaceWith(live);
      live.className = words.className;
      if (live.textContent !== words.textContent) live.textContent = words.textContent;
    }
    document.title = fresh.title;
    if (place >= 0) {
      const now = before.querySelectorAll("a, summary, button, [tabindex]")[place];
      if (now) now.focus({ preventScroll: true });
    }
  };

  const look = async () => {
    if (!isOn() || isBusy()) return;
    try {
      const headers = tag ? { "If-None-Match": tag } : {};
      const answer = await fetch(location.href, { headers, cache: "no-store" });
      document.body.classList.remove("stale");
      if (answer.status !== 200) return;
      tag = answer.headers.get("ETag") || "";
      renew(await answer.text());
    } catch {
      document.body.classList.add("stale");
    }
  };

  button.hidden = false;
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(!isOn()));
    look();
  });
  setInterval(look, EVERY_MS);
})();
