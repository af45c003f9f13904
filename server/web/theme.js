// Sets the stored theme before anything is drawn, so that the page does not flash.
"use strict";
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("toto-theme");
  } catch {
    // Without storage the system's preference applies.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
