// Top keys, and operations on a key.

import { call } from "./api.js";
import { byId, clockTime, duration, element, facts, fillOptions, keyText, meter, number, refresh, table, visible } from "./dom.js";

let chosen;
let report;

export function start(tell) {
  report = tell;
  for (const id of ["keys-by", "keys-limit", "keys-window"]) byId(id).addEventListener("change", () => load());
  byId("key-close").addEventListener("click", () => byId("key-dialog").close());
  byId("key-block").addEventListener("click", () => change("block", { for: byId("block-for").value }));
  byId("key-unblock").addEventListener("click", () => change("unblock"));
  byId("key-reset").addEventListener("click", () => change("reset"));
}

export const names = (limits) => fillOptions(byId("keys-limit"), limits);

export async function load() {
  const parameters = new URLSearchParams({ by: byId("keys-by").value, window: byId("keys-window").value, count: "20" });
  if (byId("keys-limit").value) parameters.set("limit", byId("keys-limit").value);
  const top = await call("GET", `v1/top?${parameters}`);
  const missed = top.missed > 0 ? ` ${number(top.missed)} decisions are in no list.` : "";
  byId("keys-note").textContent =
    `Decisions of this node since ${clockTime(top.from)}. Keys are hashed unless a limit has show_keys: true.${missed}`;
  const columns = (limit) => [
    ["Key", (row) => keyText(row.key), "key"],
    ["Units", (row) => element("span", {}, number(row.units),
      ...(row.error > 0 ? [element("span", { class: "quiet" }, ` (−${number(row.error)})`)] : [])), "number"],
    ["Used at last request", (row) => meter(row.limit - row.remaining, row.limit)],
    ["Last", (row) => clockTime(row.last), "time"],
    ["", (row) => element("span", {},
      element("button", { type: "button", onclick: () => open(limit, row.key) }, "Inspect"),
      element("button", { type: "button", class: "danger", onclick: () => block(limit, row.key) }, "Block 10 min"),
    ), "actions"],
  ];
  const lists = top.limits.map((limit) => element("div", { class: "card" },
    element("h3", {}, visible(limit.name), element("span", { class: "quiet" }, ` ${number(limit.units)} units in all`)),
    element("div", { class: "scroll" }, table(columns(limit.name), limit.keys, "none")),
    ...(limit.unlisted_max > 0
      ? [element("p", { class: "quiet" }, `No other key has more than ${number(limit.unlisted_max)} units.`)] : [])));
  refresh(byId("keys-lists"), ...(lists.length > 0 ? lists : [element("p", { class: "card empty" }, "No such decisions in this window.")]));
}

async function block(limit, key) {
  await report(async () => {
    const done = await call("POST", "v1/block", { attributes: key, limit, for: "10m" });
    return `Blocked until ${clockTime(done.blocked_until)}.`;
  });
}

async function open(limit, key) {
  chosen = { limit, key };
  await report(async () => {
    await inspect();
    byId("key-dialog").showModal();
  });
}

async function inspect() {
  const { limit, key } = chosen;
  const found = await call("POST", "v1/inspect", { attributes: key, limit });
  byId("key-error").hidden = true;
  byId("key-title").replaceChildren(visible(limit));
  const one = found.limits[0];
  const rows = [["Key", keyText(key)]];
  if (one) {
    const blocked = one.blocked_until
      ? element("span", { class: "pill bad" }, `until ${clockTime(one.blocked_until)}`)
      : element("span", { class: "pill good" }, "no");
    rows.push(["Rate", one.rate], ["Algorithm", one.algorithm ?? "–"], ["Mode", one.mode],
      ["Tier", found.tier?.name ?? "none"],
      ["Used", one.used === null ? "–" : meter(one.used, one.limit)],
      ["Remaining", one.remaining === null ? "–" : number(one.remaining)],
      ["Full again in", one.reset_after === null ? "–" : duration(one.reset_after)],
      ["Blocked", blocked]);
  } else {
    rows.push(["State", "none: the limit is off"]);
  }
  byId("key-body").replaceChildren(facts(rows));
}

async function change(what, more = {}) {
  try {
    await call("POST", `v1/${what}`, { attributes: chosen.key, limit: chosen.limit, ...more });
    await inspect();
  } catch (error) {
    byId("key-error").textContent = error.message;
    byId("key-error").hidden = false;
  }
}
