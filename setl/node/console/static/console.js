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

// Keeps a page up to date: the server renders its regions again and sends those that have changed.
(() => {
  const page = document.body.dataset.live;
  const sign = document.getElementById("live");
  if (!page || !sign || !window.EventSource) return;

  const node = document.querySelector(".who .node").textContent;
  const old = document.getElementById("old");
  let seen = Date.now();
  const say = (state, words) => {
    if (sign.dataset.state === state) return;
    sign.dataset.state = state;
    sign.textContent = words;
  };
  const live = () => {
    seen = Date.now();
    say("live", "live");
    document.body.classList.remove("old");
    old.hidden = true;
  };
  // Figures that nobody keeps up to date must not pass for those of now.
  const lost = (words, why) => {
    say("lost", words);
    if (!old.hidden) return;
    document.getElementById("old-words").textContent =
      `${why} This page shows what was so at ${new Date(seen).toISOString().slice(11, 19)} UTC.`;
    document.body.classList.add("old");
    old.hidden = false;
  };

  const replace = (region, html) => {
    const busy = region.contains(document.activeElement) ? document.activeElement : null;
    // What somebody is filling in stays until he has left it.
    if (busy && busy.matches("input, select, textarea")) return false;
    const open = [...region.querySelectorAll("details[open][id]")].map((each) => each.id);
    const focus = busy && busy.id;
    region.innerHTML = html;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    region.dispatchEvent(new CustomEvent("replaced", { bubbles: true }));
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

  let events = null;
  const listen = () => {
    events = new EventSource(`/console/events?of=${encodeURIComponent(page)}`);
    events.addEventListener("regions", (event) => {
      live();
      apply(JSON.parse(event.data));
    });
    events.addEventListener("alive", live);
    events.addEventListener("old", () => lost("old", `Node ${node} cannot look at the cluster.`));
    events.addEventListener("gone", () => location.assign("/"));
    events.addEventListener("error", () => {
      lost("no connection", `Node ${node} does not answer.`);
      // A browser asks again by itself after a connection that broke, but not after a refusal.
      if (events.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
    });
  };
  listen();
  // A frozen node keeps its connections open and says nothing.
  setInterval(() => {
    if (Date.now() - seen > 12000) lost("no news", `Node ${node} says nothing any more.`);
  }, 2000);
  window.addEventListener("pagehide", () => events.close());
})();
