// Single requests: decisions as they happen, and a request to try.

import { call, events } from "./api.js";
import { byId, clockTime, element, facts, fillLimits, keyText, meter, number, table, visible } from "./dom.js";

const ROWS_MAX = 100;
let watching;
let rows = [];
let skipped = 0;

export function start(report) {
  byId("tail-toggle").addEventListener("click", () => (watching ? stop() : report(watch)));
  byId("try-form").addEventListener("submit", (event) => {
    event.preventDefault();
    report(tryRequest);
  });
}

export const names = (limits) => fillLimits(byId("tail-limit"), limits);

export function stop() {
  watching?.abort();
  watching = undefined;
  byId("tail-toggle").textContent = "Watch";
}

async function watch() {
  const parameters = new URLSearchParams();
  if (byId("tail-limit").value) parameters.set("limit", byId("tail-limit").value);
  if (byId("tail-refused").checked) parameters.set("refused", "true");
  watching = new AbortController();
  [rows, skipped] = [[], 0];
  byId("tail-toggle").textContent = "Stop";
  show();
  const timer = setInterval(show, 250);
  try {
    await events(`v1/tail?${parameters}`, (name, data) => {
      if (name === "decision") rows = [data, ...rows].slice(0, ROWS_MAX);
      if (name === "skipped") skipped += data.decisions;
    }, watching.signal);
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  } finally {
    clearInterval(timer);
    show();
    stop();
  }
}

const VERDICTS = { admitted: "good", refused: "bad", shadow_refused: "warn" };

function show() {
  byId("tail-note").textContent = skipped > 0
    ? `The last ${number(rows.length)} decisions; ${number(skipped)} came too fast to be shown.`
    : "Decisions appear here as they happen.";
  const columns = [
    ["Time", (row) => clockTime(row.time), "time"],
    ["Verdict", (row) => element("span", { class: `pill ${VERDICTS[row.verdict]}` }, row.verdict.replace("_", "-"))],
    ["Limit", (row) => visible(row.limit), "name"],
    ["Key", (row) => keyText(row.key), "key"],
    ["Units", (row) => number(row.units), "number"],
    ["Used", (row) => meter(row.capacity - row.remaining, row.capacity)],
    ["Source", (row) => row.source, "name"],
  ];
  byId("tail-rows").replaceChildren(table(columns, rows, watching ? "Waiting for a decision." : "Press Watch to begin."));
}

async function tryRequest() {
  const attributes = {};
  for (const line of byId("try-attributes").value.split("\n")) {
    if (line.trim() === "") continue;
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`write name=value, such as user=42, in each line; this is not: ${line}`);
    attributes[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  const cost = Number(byId("try-cost").value);
  const answer = await call("POST", "v1/peek", { attributes, cost });
  const seconds = (value) => (value === null ? "never" : `${value} s`);
  const summary = facts([
    ["Answer", element("span", { class: `pill ${answer.allowed ? "good" : "bad"}` },
      answer.allowed ? "admitted" : `refused with ${answer.status}`)],
    ["Retry after", answer.allowed ? "–" : seconds(answer.retry_after)],
    ...(answer.delay > 0 ? [["Delay", seconds(answer.delay)]] : []),
    ["Decided by", answer.source],
  ]);
  const columns = [
    ["Limit", (row) => visible(row.name), "name"],
    ["Answer", (row) => element("span", { class: `pill ${row.allowed ? "good" : "bad"}` }, row.allowed ? "admits" : "refuses")],
    ["Remaining", (row) => (row.remaining === null ? "not disclosed" : `${number(row.remaining)} of ${number(row.limit)}`), "number"],
    ["Retry after", (row) => (row.allowed ? "–" : seconds(row.retry_after)), "number"],
    ["Mode", (row) => row.mode],
    ["Source", (row) => row.source],
  ];
  byId("try-result").replaceChildren(element("div", { class: "card" }, summary),
    element("div", { class: "card scroll" }, table(columns, answer.limits, "No limit applies to this request.")));
}
