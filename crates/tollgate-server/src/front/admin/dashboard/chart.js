// Draws stacked areas, and a line above them, as SVG.

import { clockTime, element, rate } from "./dom.js";

const WIDTH = 1000;
const HEIGHT = 240;
const LEFT = 46;
const BOTTOM = 26;
const TOP = 8;

function shape(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** The least of 1, 2, 5, 10, ... that is not below the value. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999999);
}

/** Lists series {name, kind} below a chart. */
export function legend(place, series) {
  place.replaceChildren(...series.map((one) => element("li", { class: `swatch ${one.kind}` }, one.name)));
}

/**
 * Draws points {time, values} as areas on top of each other. `series` are {name, kind}; the times
 * from `from` to `to` are in seconds. With `line`, a series too, the `line` of each point is drawn
 * above the areas.
 */
export function draw(place, points, series, from, to, { title, line }) {
  const at = (one, index) => one.values[index] ?? 0;
  // In pixels, so that text is not stretched.
  const width = Math.max(260, place.clientWidth || WIDTH);
  const plotHeight = HEIGHT - TOP - BOTTOM;
  const x = (time) => LEFT + (time - from) / (to - from) * (width - LEFT - 4);
  const height = (point) => Math.max(point.line ?? 0, series.reduce((sum, _, index) => sum + at(point, index), 0));
  const highest = Math.max(1, ...points.map(height));
  const step = roundUp(highest / 4);
  const top = Math.ceil(highest / step) * step;
  const y = (value) => TOP + plotHeight * (1 - value / top);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img" });
  const last = points.at(-1) ?? { values: [] };
  svg.setAttribute("aria-label", `${title}, now: ${named(last, series, line).map(([, text]) => text).join(", ")}`);
  for (let value = 0; value <= top + step / 2; value += step) {
    svg.append(shape("line", { class: "grid", x1: LEFT, x2: width - 4, y1: y(value), y2: y(value) }));
    const label = shape("text", { class: "axis", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" });
    label.textContent = rate(value);
    svg.append(label);
  }
  const labels = width < 500 ? 3 : 7;
  const every = [15, 30, 60, 120, 180, 300].find((step) => (to - from) / step <= labels) ?? 600;
  for (let time = Math.ceil(from / every) * every; time <= to; time += every) {
    if (x(time) > width - 20) continue;
    const label = shape("text", { class: "axis", x: x(time), y: HEIGHT - 6, "text-anchor": "middle" });
    label.textContent = every < 60 ? clockTime(time * 1000) : clockTime(time * 1000).slice(0, 5);
    svg.append(label);
  }
  let below = points.map(() => 0);
  series.forEach((one, index) => {
    const above = points.map((point, n) => below[n] + at(point, index));
    if (points.length > 1 && points.some((point) => at(point, index) > 0)) {
      const up = points.map((point, n) => `${x(point.time)},${y(above[n])}`);
      const down = points.map((point, n) => `${x(point.time)},${y(below[n])}`).reverse();
      svg.append(shape("path", { class: `area ${one.kind}`, d: `M${up.join("L")}L${down.join("L")}Z` }));
    }
    below = above;
  });
  const lined = points.filter((point) => line && point.line !== undefined && point.line !== null);
  if (lined.length > 1) {
    const path = lined.map((point) => `${x(point.time)},${y(point.line)}`).join("L");
    svg.append(shape("path", { class: `line ${line.kind}`, d: `M${path}` }));
  }
  const cursor = shape("line", { class: "cursor", y1: TOP, y2: TOP + plotHeight, visibility: "hidden" });
  svg.append(cursor);
  const tip = element("div", { class: "tip", hidden: true });
  place.replaceChildren(svg, tip);
  follow(place).show = (left) => {
    const nearest = points.reduce((best, one) =>
      best === undefined || Math.abs(x(one.time) - left) < Math.abs(x(best.time) - left) ? one : best, undefined);
    tip.hidden = nearest === undefined;
    if (nearest === undefined) return;
    const center = x(nearest.time);
    cursor.setAttribute("x1", center);
    cursor.setAttribute("x2", center);
    cursor.setAttribute("visibility", "visible");
    tip.replaceChildren(element("strong", {}, clockTime(nearest.time * 1000)),
      ...named(nearest, series, line).map(([kind, text]) => element("div", { class: `swatch ${kind}` }, text)));
    tip.style.left = center > width / 2 ? "" : `${center + 12}px`;
    tip.style.right = center > width / 2 ? `${width - center + 12}px` : "";
  };
  const { pointer, show } = follow(place);
  if (pointer !== undefined) show(pointer);
}

/** The figures of a point: their kinds and texts. */
function named(point, series, line) {
  const all = series.map((one, n) => [one.kind, `${rate(point.values[n] ?? 0)} ${one.name}`]);
  if (line && point.line) all.push([`${line.kind} line`, `${rate(point.line)} ${line.name}`]);
  return all;
}

/** For each chart: the pointer's pixels from the left, and the function that shows the figures. */
const followed = new WeakMap();

function follow(place) {
  if (followed.has(place)) return followed.get(place);
  const state = { pointer: undefined, show: () => {} };
  followed.set(place, state);
  place.addEventListener("pointermove", (event) => {
    state.pointer = event.clientX - place.getBoundingClientRect().left;
    state.show(state.pointer);
  });
  place.addEventListener("pointerleave", () => {
    state.pointer = undefined;
    place.querySelector(".tip").hidden = true;
    place.querySelector(".cursor").setAttribute("visibility", "hidden");
  });
  return state;
}
