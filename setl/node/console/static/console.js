"use strict";
// What takes a while says so, beside the button that was pressed.
(() => {
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    setTimeout(() => {
      if (!button?.isConnected || document.querySelector(".working")) return;
      const sign = document.createElement("span");
      sign.className = "working muted";
      sign.setAttribute("role", "status");
      sign.textContent = "under way …";
      button.after(sign);
    }, 700);
  });
  // A page that the browser has kept is shown as it was left.
  window.addEventListener("pageshow", () => document.querySelector(".working")?.remove());
})();

// Keeps a page up to date: the server renders its regions anew and sends those that have changed.
(() => {
  const page = document.body.dataset.live;
  const sign = document.getElementById("live");
  if (!page || !sign || !window.EventSource) return;

  const say = (state, words) => {
    if (sign.dataset.state === state) return;
    sign.dataset.state = state;
    sign.textContent = words;
  };

  const replace = (region, html) => {
    const busy = region.contains(document.activeElement) ? document.activeElement : null;
    // What somebody is filling in stays until he has left it.
    if (busy && busy.matches("input, select, textarea")) return false;
    const open = [...region.querySelectorAll("details[open][id]")].map((each) => each.id);
    const focus = busy && busy.id;
    region.innerHTML = html;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
    return true;
  };

  let waiting = {};
  const apply = (regions) => {
    for (const [id, html] of Object.entries({ ...waiting, ...regions })) {
      const region = document.getElementById(id);
      waiting[id] = html;
      if (!region || replace(region, html)) delete waiting[id];
    }
  };
  document.addEventListener("focusout", () => setTimeout(() => apply({}), 0));

  const events = new EventSource(`/console/events?of=${encodeURIComponent(page)}`);
  let seen = Date.now();
  events.addEventListener("regions", (event) => {
    seen = Date.now();
    say("live", "live");
    apply(JSON.parse(event.data));
  });
  events.addEventListener("alive", () => {
    seen = Date.now();
    say("live", "live");
  });
  events.addEventListener("gone", () => location.assign("/"));
  events.addEventListener("error", () => say("lost", "no connection"));
  // A frozen node keeps its connections open and says nothing.
  setInterval(() => {
    if (Date.now() - seen > 12000) say("lost", "no news");
  }, 2000);
  window.addEventListener("pagehide", () => events.close());
})();
