// Classes: admitted, shed and in-flight requests of each class.

import { draw, legend } from "./chart.js";
import { byId, clockTime, element, fillOptions, number, rate, refresh, table, visible } from "./dom.js";
import * as history from "./history.js";

const SERIES = [
  { name: "admitted", kind: "admitted" },
  { name: "shed: the fleet is full", kind: "closed" },
  { name: "shed: the node is at its limit", kind: "refused" },
  { name: "shed: waited too long", kind: "open" },
];
const SHADOW = 4;
const IN_FLIGHT = 5;
const AT_UPSTREAM = 6;
/** Clients that left the queue. */
const LEFT = 7;
const ALL_IN_FLIGHT = [{ name: "in flight", kind: "admitted" }];
/** Only the adaptive shedder knows which requests the upstream works on. */
const FLIGHT = [{ name: "at the upstream", kind: "admitted" }, { name: "waiting, or being answered", kind: "shadow" }];
const LIMIT = { name: "limit of this node", kind: "refused" };

const shed = (figures) => (figures[1] ?? 0) + (figures[2] ?? 0) + (figures[3] ?? 0);
const offered = (figures) => (figures[0] ?? 0) + shed(figures) + (figures[LEFT] ?? 0);

export function figures(data) {
  fillOptions(byId("classes-class"), data.classes.map((one) => one.name));
  if (byId("page-classes").hidden) return;
  const has = data.classes.length > 0;
  byId("classes-none").hidden = has;
  byId("classes-all").hidden = !has;
  if (has) show(data);
}

function show(data) {
  const name = byId("classes-class").value;
  const now = history.now("classes", name);
  const sum = (figure) => data.classes.filter((one) => !name || one.name === name).reduce((all, one) => all + one[figure], 0);
  const tile = (kind, title, value, detail) => element("div", { class: kind },
    element("dt", {}, title), element("dd", {}, value, element("small", {}, ` ${detail}`)));
  byId("classes-tiles").replaceChildren(
    tile("", "Offered", rate(offered(now)), "/s"),
    tile("admitted", "Admitted", rate(now[0] ?? 0), "/s"),
    tile("refused", "Shed", rate(shed(now)), "/s"),
    data.adaptive ? tile("shadow", "At the upstream", number(sum("at_upstream")), `of ${number(data.adaptive.limit)}`)
      : tile("shadow", "In flight", number(sum("in_flight")), ""));
  const [from, to] = history.span();
  const drawn = history.overTime("classes", name);
  draw(byId("classes-chart"), drawn, SERIES, from, to, { title: "Requests per second" });
  const isUsed = (_, n) => n === 0 || drawn.some((point) => point.values[n] > 0);
  legend(byId("classes-legend"), SERIES.filter(isUsed));
  const shown = history.all().filter((point) => point.time >= from);
  const series = data.adaptive ? FLIGHT : ALL_IN_FLIGHT;
  const flight = shown.map((point) => ({ time: point.time, values: inFlightAt(point, name, data.adaptive), line: point.limit }));
  draw(byId("flight-chart"), flight, series, from, to, { title: "Requests in flight", line: LIMIT });
  legend(byId("flight-legend"), data.adaptive ? [...series, { ...LIMIT, kind: "refused line" }] : series);
  if (byId("classes-table").parentElement.open) {
    const columns = [["time", (point) => clockTime(point.time * 1000), "time"],
      ...SERIES.map((one, n) => [one.name, (point) => rate(point.values[n] ?? 0), "number"])];
    byId("classes-table").replaceChildren(table(columns, drawn.slice(-36).reverse(), "no figures yet", { dense: true }));
  }
  showClasses(data);
}

function inFlightAt(point, name, isSplit) {
  const of = Object.entries(point.classes ?? {}).filter(([one]) => !name || one === name).map(([, values]) => values);
  const sum = (place) => of.reduce((all, values) => all + (values[place] ?? 0), 0);
  if (!isSplit) return [sum(IN_FLIGHT)];
  return [sum(AT_UPSTREAM), Math.max(0, sum(IN_FLIGHT) - sum(AT_UPSTREAM))];
}

function showClasses(data) {
  const rows = data.classes.map((one) => ({ one, now: history.now("classes", one.name) }));
  const shedInAll = ({ one }) => Object.values(one.shed).reduce((all, count) => all + count, 0);
  const share = (row) => (row.one.offered > 0 ? `${(100 * shedInAll(row) / row.one.offered).toFixed(1)} %` : "–");
  const columns = [
    ["Class", ({ one }) => visible(one.name), "name"],
    ["Offered /s", ({ now }) => rate(offered(now)), "number"],
    ["Admitted /s", ({ now }) => rate(now[0] ?? 0), "number"],
    ["Shed /s", ({ now }) => rate(shed(now)), "number"],
    ["Shadow /s", ({ now }) => rate(now[SHADOW] ?? 0), "number"],
    ["In flight", ({ one }) => number(one.in_flight), "number"],
    ...(data.adaptive ? [["At the upstream", ({ one }) => number(one.at_upstream), "number"]] : []),
    ["Shed in all", (row) => number(shedInAll(row)), "number"],
    ["Share", share, "number"],
  ];
  refresh(byId("classes-rows"), table(columns, rows, "no classes"));
}
