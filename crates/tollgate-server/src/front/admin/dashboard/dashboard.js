// The dashboard: pages, token, and the stream of figures.

import { CallError, events, forgetToken, setToken, token } from "./api.js";
import * as classes from "./classes.js";
import { byId, clockTime } from "./dom.js";
import * as history from "./history.js";
import * as keys from "./keys.js";
import * as limits from "./limits.js";
import * as overview from "./overview.js";
import * as requests from "./requests.js";
import * as system from "./system.js";

const PAGES = ["overview", "keys", "decisions", "limits", "classes", "system", "try"];
const KEYS_EVERY_MS = 3000;
let page = "overview";
let generation;
let noticeTimer;

function notice(text, isGood = false) {
  clearTimeout(noticeTimer);
  byId("notice").textContent = text;
  byId("notice").classList.toggle("good", isGood);
  byId("notice").hidden = text === "";
  if (isGood) noticeTimer = setTimeout(() => notice(""), 6000);
}

/** Runs an action and shows its result. After a wrong token, asks for the token again. */
async function report(act, afterwards = () => {}) {
  try {
    const text = await act();
    if (text) notice(text, true);
  } catch (error) {
    if (error instanceof CallError && error.status === 401) askToken(error.message);
    else notice(error.message);
    await Promise.resolve(afterwards()).catch(() => {});
  }
}

function health(kind, text) {
  byId("health").className = `pill ${kind}`;
  byId("health").textContent = text;
}

function askToken(why) {
  forgetToken();
  health("warn", "no token");
  byId("forget").hidden = true;
  byId("token-error").textContent = why ?? "";
  byId("token-error").hidden = !why;
  if (!byId("token-dialog").open) byId("token-dialog").showModal();
  byId("token-input").focus();
}

function see(name, data) {
  if (name === "history") return history.history(data);
  if (name !== "figures") return undefined;
  const problems = Object.keys(data.problems).length;
  health(data.ready ? (problems > 0 ? "warn" : "good") : "bad",
    data.ready ? (problems > 0 ? "ready, with problems" : "ready") : "not ready");
  byId("clock").textContent = `${clockTime(data.time)}, generation ${data.generation}`;
  const names = data.limits.map((limit) => limit.name);
  keys.names(names);
  requests.names(names);
  history.add(data);
  overview.figures(data);
  classes.figures(data);
  system.figures(data);
  if (generation !== undefined && generation !== data.generation && page === "limits") limits.load().catch(() => {});
  generation = data.generation;
  return undefined;
}

/** Follows the figures for ever. The node may restart at any time. */
async function follow() {
  let wait = 500;
  let why;
  for (;;) {
    if (token() === null) {
      askToken(why);
      await new Promise((resolve) => byId("token-dialog").addEventListener("close", resolve, { once: true }));
    }
    try {
      byId("forget").hidden = token() === null;
      await events("v1/live", (name, data) => {
        wait = 500;
        see(name, data);
      });
      health("warn", "connecting");
    } catch (error) {
      if (error instanceof CallError && error.status === 401) {
        forgetToken();
        why = error.message;
        continue;
      }
      health("bad", "not connected");
      if (error instanceof CallError) notice(error.message);
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(wait * 2, 10_000);
  }
}

/** Scrolls to the tab of this page, if not all tabs fit. */
function showTab() {
  byId("tabs").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function open() {
  const wanted = location.hash.slice(1);
  page = PAGES.includes(wanted) ? wanted : "overview";
  for (const name of PAGES) byId(`page-${name}`).hidden = name !== page;
  for (const link of byId("tabs").querySelectorAll("a")) {
    if (link.hash === `#${page}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  showTab();
  document.title = `${byId(`title-${page}`).textContent} – Tollgate`;
  if (page !== "decisions") requests.stop();
  if (token() === null) return;
  if (page === "keys") report(keys.load);
  if (page === "limits") report(limits.load);
}

byId("token-form").addEventListener("submit", () => {
  setToken(byId("token-input").value.trim());
  byId("token-input").value = "";
  notice("");
  setTimeout(open);
});
byId("token-dialog").addEventListener("cancel", (event) => event.preventDefault());
byId("forget").addEventListener("click", () => {
  forgetToken();
  location.reload();
});
window.addEventListener("hashchange", () => {
  notice("");
  open();
  byId("main").focus({ preventScroll: true });
  window.scrollTo(0, 0);
});
window.addEventListener("resize", showTab);
setInterval(() => {
  if (page === "keys" && token() !== null && !document.hidden) keys.load().catch(() => {});
}, KEYS_EVERY_MS);

keys.start(report);
limits.start(report);
requests.start(report);
open();
follow();
