// Overview: what was decided over time, and by which limit.

import { draw } from "./chart.js";
import { byId, clockTime, element, fillLimits, number, rate, refresh, table, visible } from "./dom.js";

const SERIES = [
  { name: "admitted", kind: "admitted" },
  { name: "refused", kind: "refused" },
  { name: "shadow-refused", kind: "shadow" },
  { name: "let through by failure policy", kind: "open" },
  { name: "refused by failure policy", kind: "closed" },
];
const SPAN_S = 900;
const SPAN_MIN_S = 120;
const STEP_S = 5;

/** Counters since the node's start: {time, limits: {name: [five counters]}}, oldest first. */
let points = [];
let latest;
let before;

const counters = (limit) => [
  limit.admitted, limit.refused, limit.shadow_refused,
  limit.fail_open + limit.local_admitted, limit.fail_closed + limit.local_refused,
];

const asPoint = (figures) => ({
  time: Date.parse(figures.time) / 1000,
  limits: Object.fromEntries(figures.limits.map((limit) => [limit.name, counters(limit)])),
});

/** Decisions per second between two points, of one limit or of all. A restart counts from zero. */
function rates(from, to, limit) {
  const seconds = Math.max(0.001, to.time - from.time);
  const sums = SERIES.map(() => 0);
  for (const [name, values] of Object.entries(to.limits)) {
    if (limit && name !== limit) continue;
    const earlier = from.limits[name] ?? SERIES.map(() => 0);
    values.forEach((value, n) => { sums[n] += Math.max(0, value - (earlier[n] ?? 0)) / seconds; });
  }
  return sums;
}

export function history(data) {
  points = data.points;
  before = points.at(-1);
}

export function figures(data) {
  const point = asPoint(data);
  if (points.length === 0 || point.time - points.at(-1).time >= STEP_S) {
    points.push(point);
    points = points.filter((one) => point.time - one.time <= SPAN_S + STEP_S);
  }
  before = latest ?? before ?? point;
  latest = point;
  fillLimits(byId("overview-limit"), data.limits.map((limit) => limit.name));
  if (!byId("page-overview").hidden) show(data);
}

function show(data) {
  const limit = byId("overview-limit").value;
  const now = rates(before, latest, limit);
  const tile = (kind, name, value, detail) => element("div", { class: kind },
    element("dt", {}, name), element("dd", {}, rate(value), element("small", {}, ` ${detail}`)));
  byId("tiles").replaceChildren(
    tile("admitted", "Admitted", now[0], "/s"),
    tile("refused", "Refused", now[1], "/s"),
    tile("shadow", "Shadow-refused", now[2], "/s"),
    tile("open", "By failure policy", now[3] + now[4], "/s"));
  const drawn = points.slice(1).map((point, n) => ({ time: point.time, values: rates(points[n], point, limit) }));
  // A node that has just started has little to show.
  const from = Math.min(latest.time - SPAN_MIN_S, Math.max(latest.time - SPAN_S, points[0].time));
  draw(byId("chart"), drawn, SERIES, from, latest.time);
  const shown = SERIES.filter((_, n) => n < 3 || drawn.some((point) => point.values[n] > 0));
  byId("legend").replaceChildren(...shown.map((one) => element("li", { class: `swatch ${one.kind}` }, one.name)));
  if (byId("chart-table").parentElement.open) {
    const columns = [["time", (point) => clockTime(point.time * 1000), "time"],
      ...SERIES.map((one, n) => [one.name, (point) => rate(point.values[n]), "number"])];
    byId("chart-table").replaceChildren(table(columns, drawn.slice(-36).reverse(), "no figures yet", { dense: true }));
  }
  showLimits(data);
}

function showLimits(data) {
  const rows = data.limits.map((limit) => ({ limit, now: rates(before, latest, limit.name) }));
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
