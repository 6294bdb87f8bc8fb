// Elements. Text is set as text, never as HTML.

export const byId = (id) => document.getElementById(id);

/** An element with attributes and children; a string is a text node. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== undefined) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;

/** Makes control characters and direction marks in a text visible. */
export function visible(text) {
  const out = document.createDocumentFragment();
  let plain = "";
  for (const character of String(text)) {
    if (!HIDDEN.test(character)) {
      plain += character;
      continue;
    }
    out.append(plain);
    plain = "";
    const code = character.codePointAt(0).toString(16).padStart(2, "0");
    out.append(element("span", { class: "control" }, `\\u{${code}}`));
  }
  out.append(plain);
  return out;
}

/** Renders a text; parts in backticks become code. */
export function coded(text) {
  const out = document.createDocumentFragment();
  String(text).split("`").forEach((part, place) => out.append(place % 2 === 1
    ? element("code", {}, visible(part)) : visible(part)));
  return out;
}

/** A key for display: its attributes, or a note that all requests share it. */
export function keyText(key) {
  const names = Object.keys(key);
  if (names.length === 0) return element("span", { class: "quiet" }, "all requests");
  const out = element("span", { class: "mono" });
  names.forEach((name, place) => {
    if (place > 0) out.append(" ");
    out.append(element("span", { class: "quiet" }, `${name}=`), visible(key[name]));
  });
  return out;
}

/**
 * A table. Columns are [heading, cell(row), class]. On a phone a row is a list, unless it is dense.
 */
export function table(columns, rows, empty, { dense = false } = {}) {
  if (rows.length === 0) return element("p", { class: "empty" }, empty);
  const head = columns.map(([heading, , kind]) => element("th", { scope: "col", class: kind ?? "" }, heading));
  const body = rows.map((row) => {
    const cells = columns.map(([heading, cell, kind]) =>
      element("td", { class: kind ?? "", "data-label": heading }, cell(row)));
    return element("tr", {}, ...cells);
  });
  return element("table", { class: dense ? "" : "stack" },
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
}

/** A list of names and values. */
export function facts(pairs) {
  return element("dl", { class: "facts" }, ...pairs.flatMap(([name, value]) =>
    [element("dt", {}, name), element("dd", {}, value)]));
}

/** The used share of a limit. */
export function meter(used, limit) {
  const share = limit > 0 ? Math.min(1, used / limit) : 0;
  const kind = share >= 1 ? "refused" : share > 0.8 ? "shadow" : "admitted";
  const fill = element("i", {});
  fill.style.width = `${share * 100}%`;
  return element("span", { class: `meter ${kind}` },
    element("span", { "aria-hidden": "true" }, fill), element("span", {}, `${number(used)} of ${number(limit)}`));
}

export const number = (value) => Number(value).toLocaleString("en-US");

/** A rate with three significant digits. */
export function rate(value) {
  if (value >= 100 || value === 0) return number(Math.round(value));
  return value.toLocaleString("en-US", { maximumFractionDigits: value >= 10 ? 1 : 2 });
}

/** A duration, rounded up: 4.5 s, 2 min 30 s, 3 h 20 min. */
export function duration(seconds) {
  if (seconds < 60) return `${number(Math.ceil(seconds * 10) / 10)} s`;
  let rest = Math.ceil(seconds);
  const parts = [];
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]]) {
    if (rest >= length) parts.push(`${Math.floor(rest / length)} ${unit}`);
    rest %= length;
  }
  return parts.slice(0, 2).join(" ");
}

export const clockTime = (time) => new Date(time).toLocaleTimeString([], { hour12: false });

/** Fills a select with names below its first option, and keeps the choice. */
export function fillOptions(select, names) {
  const known = [...select.options].slice(1).map((option) => option.value);
  if (known.length === names.length && known.every((name, place) => name === names[place])) return;
  const chosen = select.value;
  select.replaceChildren(select.options[0], ...names.map((name) => element("option", { value: name }, name)));
  select.value = names.includes(chosen) ? chosen : "";
}

/** Replaces children, unless one of them has focus, such as a menu or a button. */
export function refresh(place, ...children) {
  if (place.contains(document.activeElement) && document.activeElement !== place) return;
  place.replaceChildren(...children);
}
