// Before anything is drawn: the theme chosen earlier, so that no page flashes in the other one.
"use strict";
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("toto-theme");
  } catch {
    // Storage may be forbidden; the system's preference then holds.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
