// Overview: decisions over time, and by limit.

import { draw, legend } from "./chart.js";
import { byId, clockTime, element, fillOptions, number, rate, refresh, table, visible } from "./dom.js";
import * as history from "./history.js";

const SERIES = [
  { name: "admitted", kind: "admitted" },
  { name: "refused", kind: "refused" },
  { name: "shadow-refused", kind: "shadow" },
  { name: "let through by failure policy", kind: "open" },
  { name: "refused by failure policy", kind: "closed" },
];

export function figures(data) {
  fillOptions(byId("overview-limit"), data.limits.map((limit) => limit.name));
  if (!byId("page-overview").hidden) show(data);
}

function show(data) {
  const limit = byId("overview-limit").value;
  const now = history.now("limits", limit);
  const tile = (kind, name, value, detail) => element("div", { class: kind },
    element("dt", {}, name), element("dd", {}, rate(value ?? 0), element("small", {}, ` ${detail}`)));
  byId("tiles").replaceChildren(
    tile("admitted", "Admitted", now[0], "/s"),
    tile("refused", "Refused", now[1], "/s"),
    tile("shadow", "Shadow-refused", now[2], "/s"),
    tile("open", "By failure policy", (now[3] ?? 0) + (now[4] ?? 0), "/s"));
  const drawn = history.overTime("limits", limit);
  const [from, to] = history.span();
  draw(byId("chart"), drawn, SERIES, from, to, { title: "Decisions per second" });
  legend(byId("legend"), SERIES.filter((_, n) => n < 3 || drawn.some((point) => point.values[n] > 0)));
  if (byId("chart-table").parentElement.open) {
    const columns = [["time", (point) => clockTime(point.time * 1000), "time"],
      ...SERIES.map((one, n) => [one.name, (point) => rate(point.values[n] ?? 0), "number"])];
    byId("chart-table").replaceChildren(table(columns, drawn.slice(-36).reverse(), "no figures yet", { dense: true }));
  }
  showLimits(data);
}

function showLimits(data) {
  const rows = data.limits.map((limit) => ({ limit, now: history.now("limits", limit.name) }));
  const share = ({ limit }) => {
    const refused = limit.refused + limit.fail_closed + limit.local_refused;
    const all = refused + limit.admitted + limit.fail_open + limit.local_admitted + limit.shadow_refused;
    return all > 0 ? `${(100 * refused / all).toFixed(1)} %` : "–";
  };
  const columns = [
    ["Limit", ({ limit }) => visible(limit.name), "name"],
    ["Mode", ({ limit }) => element("span", { class: `pill ${limit.mode === "enforce" ? "good" : "warn"}` }, limit.mode)],
    ["Admitted /s", ({ now }) => rate(now[0]), "number"],
    ["Refused /s", ({ now }) => rate(now[1]), "number"],
    ["Shadow /s", ({ now }) => rate(now[2]), "number"],
    ["Failure policy /s", ({ now }) => rate(now[3] + now[4]), "number"],
    ["Refused in all", ({ limit }) => number(limit.refused), "number"],
    ["Share", share, "number"],
  ];
  refresh(byId("overview-limits"), table(columns, rows, "The policy has no limits: every request is admitted."));
}
