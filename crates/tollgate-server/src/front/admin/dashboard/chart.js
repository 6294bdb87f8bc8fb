// A stacked area chart as SVG.

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

/**
 * Draws points {time, values} as areas on top of each other. `series` are {name, kind}; the times
 * from `from` to `to` are in seconds.
 */
export function draw(place, points, series, from, to) {
  // In pixels, so that text is not stretched.
  const width = Math.max(260, place.clientWidth || WIDTH);
  const plotHeight = HEIGHT - TOP - BOTTOM;
  const x = (time) => LEFT + (time - from) / (to - from) * (width - LEFT - 4);
  const highest = Math.max(1, ...points.map((point) => point.values.reduce((sum, value) => sum + value, 0)));
  const step = roundUp(highest / 4);
  const top = Math.ceil(highest / step) * step;
  const y = (value) => TOP + plotHeight * (1 - value / top);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img" });
  const sums = series.map((one, place_) => {
    const last = points.at(-1)?.values[place_] ?? 0;
    return `${one.name} ${rate(last)}`;
  });
  svg.setAttribute("aria-label", `Decisions per second, now: ${sums.join(", ")}`);
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
    const above = points.map((point, n) => below[n] + point.values[index]);
    if (points.length > 1 && points.some((point) => point.values[index] > 0)) {
      const up = points.map((point, n) => `${x(point.time)},${y(above[n])}`);
      const down = points.map((point, n) => `${x(point.time)},${y(below[n])}`).reverse();
      svg.append(shape("path", { class: `area ${one.kind}`, d: `M${up.join("L")}L${down.join("L")}Z` }));
    }
    below = above;
  });
  const cursor = shape("line", { class: "cursor", y1: TOP, y2: TOP + plotHeight, visibility: "hidden" });
  svg.append(cursor);
  const tip = element("div", { class: "tip", hidden: true });
  place.replaceChildren(svg, tip);
  point = (at) => {
    const nearest = points.reduce((best, one) =>
      best === undefined || Math.abs(x(one.time) - at) < Math.abs(x(best.time) - at) ? one : best, undefined);
    tip.hidden = nearest === undefined;
    if (nearest === undefined) return;
    const left = x(nearest.time);
    cursor.setAttribute("x1", left);
    cursor.setAttribute("x2", left);
    cursor.setAttribute("visibility", "visible");
    tip.replaceChildren(element("strong", {}, clockTime(nearest.time * 1000)),
      ...series.map((one, n) => element("div", { class: `swatch ${one.kind}` }, `${rate(nearest.values[n])} ${one.name}`)));
    tip.style.left = left > width / 2 ? "" : `${left + 12}px`;
    tip.style.right = left > width / 2 ? `${width - left + 12}px` : "";
  };
  follow(place);
  if (pointer !== undefined) point(pointer);
}

/** Where the pointer is, in pixels from the left of the chart. */
let pointer;
/** Shows the figures at this place, in the chart that was drawn last. */
let point = () => {};

function follow(place) {
  if (place.dataset.followed) return;
  place.dataset.followed = "yes";
  place.addEventListener("pointermove", (event) => {
    pointer = event.clientX - place.getBoundingClientRect().left;
    point(pointer);
  });
  place.addEventListener("pointerleave", () => {
    pointer = undefined;
    place.querySelector(".tip").hidden = true;
    place.querySelector(".cursor").setAttribute("visibility", "hidden");
  });
}
