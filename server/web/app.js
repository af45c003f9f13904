// The page around the views: tabs, theme, key, and the first status request.

import {getJson, onKeyNeeded, setKey} from "./api.js";
import {startBacktest} from "./backtest.js";
import {byId, say} from "./dom.js";
import {loadSample, startForecast} from "./forecast.js";
import {showEngine, startStatus, watch} from "./status.js";

// --------------------------------------------------------------------------------------------- tabs

const tabs = Array.from(document.querySelectorAll('[role="tab"]'));
const panelOf = tab => byId(tab.getAttribute("aria-controls"));

function openTab(chosen, takesFocus) {
  for (const tab of tabs) {
    const open = tab === chosen;
    tab.setAttribute("aria-selected", open);
    tab.tabIndex = open ? 0 : -1;
    panelOf(tab).hidden = !open;
  }
  if (takesFocus) chosen.focus();
  history.replaceState(null, "", `#${panelOf(chosen).id}`);
  watch(panelOf(chosen).id === "status");
}

function startTabs() {
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => openTab(tab, false));
    tab.addEventListener("keydown", event => {
      const next = {ArrowRight: i + 1, ArrowLeft: i - 1 + tabs.length, Home: 0, End: tabs.length - 1}[
        event.key
      ];
      if (next === undefined) return;
      event.preventDefault();
      openTab(tabs[next % tabs.length], true);
    });
  });
  const named = tabs.find(tab => `#${panelOf(tab).id}` === location.hash);
  if (named) openTab(named, false);
}

// -------------------------------------------------------------------------------------------- theme

const kThemes = ["auto", "light", "dark"];

function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  byId("theme").textContent = `Theme: ${theme}`;
  try {
    if (theme === "auto") localStorage.removeItem("toto-theme");
    else localStorage.setItem("toto-theme", theme);
  } catch {
    // Not stored then.
  }
}

function startTheme() {
  const now = () => document.documentElement.dataset.theme || "auto";
  setTheme(now());
  byId("theme").addEventListener("click", () =>
    setTheme(kThemes[(kThemes.indexOf(now()) + 1) % kThemes.length]),
  );
}

// ---------------------------------------------------------------------------------------------- key

// Resolves to the typed key, or to null.
function askForKey(sentence) {
  const dialog = byId("key-dialog");
  byId("key-button").hidden = false;
  // A link cannot send a key.
  for (const link of document.querySelectorAll("footer a")) link.hidden = true;
  say(byId("key-error"), byId("key").value ? sentence : "");
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise(resolve => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "use" ? byId("key").value : null), {
      once: true,
    });
  });
}

function startKey() {
  onKeyNeeded(askForKey);
  byId("key-cancel").addEventListener("click", () => byId("key-dialog").close());
  byId("key-form").addEventListener("submit", event => {
    event.preventDefault();
    byId("key-dialog").close("use");
  });
  byId("key-button").addEventListener("click", async () => {
    const given = await askForKey("");
    if (given === null) return;
    setKey(given);
    watch(!byId("status").hidden);
    start();
  });
}

// -------------------------------------------------------------------------------------------- start

// The page may load before the model.
async function start() {
  try {
    let status = await getJson("/v1/status");
    for (; !status.engine; status = await getJson("/v1/status")) {
      showEngine(status);
      await new Promise(resolve => setTimeout(resolve, 300));
    }
    showEngine(status);
  } catch (error) {
    return say(byId("forecast-error"), error.message);
  }
  await loadSample();
}

startTheme();
startKey();
startForecast();
startBacktest();
startStatus();
startTabs();
start();
