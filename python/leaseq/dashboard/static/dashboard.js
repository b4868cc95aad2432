"use strict";
(() => {
  const EVERY_MS = 2000;

  /** Show moments in the time zone of the reader. UTC stays on hover. */
  const localize = (root) => {
    for (const each of root.querySelectorAll("time.moment[datetime]")) {
      const moment = new Date(each.dateTime);
      if (!Number.isNaN(moment.getTime())) each.textContent = moment.toLocaleString();
    }
  };

  /** Ask for the part of the page that changes. A page in the background rests, and so does one in which you select or move by keyboard. */
  const refresh = () => {
    const live = document.getElementById("live");
    if (live === null || document.hidden || live.contains(document.activeElement)) return;
    if (!document.getSelection().isCollapsed) return;
    window.htmx.trigger(live, "refresh");
  };

  const away = (isAway) => {
    document.getElementById("away").hidden = !isAway;
  };

  document.addEventListener("DOMContentLoaded", () => {
    localize(document);
    document.body.addEventListener("htmx:afterSwap", (event) => {
      away(false);
      localize(event.target);
    });
    document.body.addEventListener("htmx:responseError", () => away(true));
    document.body.addEventListener("htmx:sendError", () => away(true));
    document.addEventListener("visibilitychange", refresh);
    setInterval(refresh, EVERY_MS);
  });
})();
