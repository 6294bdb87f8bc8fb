// Single requests: decisions as they happen, and a request to try.

import { call, events } from "./api.js";
import { byId, clockTime, duration, element, facts, fillOptions, keyText, meter, number, table, visible } from "./dom.js";

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

export const names = (limits) => fillOptions(byId("tail-limit"), limits);

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
  const answer = await call("POST", "v1/explain", { attributes, cost });
  const seconds = (value) => (value === null ? "never" : duration(value));
  const summary = facts([
    ["Answer", element("span", { class: `pill ${answer.allowed ? "good" : "bad"}` },
      answer.allowed ? "admitted" : `refused with ${answer.status}`)],
    ["Retry after", answer.allowed ? "–" : seconds(answer.retry_after)],
    ...(answer.delay > 0 ? [["Delay", seconds(answer.delay)]] : []),
    ["Decided by", answer.source],
    ...(answer.tier ? [["Tier", answer.tier.name ? `${answer.tier.name}, from ${answer.tier.source}` : "none"]] : []),
    ...(answer.class ? [["Class", answer.class]] : []),
  ]);
  const rows = answer.limits.flatMap((limit) => (limit.decisions.length > 0
    ? limit.decisions.map((decision) => ({ ...limit, ...decision }))
    : [{ ...limit, key: [], reason: limit.why_not }]));
  const verdict = (row) => {
    if (!row.applies) return element("span", { class: "pill" }, "does not apply");
    if (row.allowed) return element("span", { class: "pill good" }, "admits");
    const isShadow = row.mode === "shadow";
    return element("span", { class: `pill ${isShadow ? "warn" : "bad"}` }, isShadow ? "would refuse" : "refuses");
  };
  const part = (one) => `${one.attribute}=${one.value ?? "(missing)"}, ${one.from}`;
  const columns = [
    ["Limit", (row) => visible(row.name), "name"],
    ["Answer", verdict],
    ["Why", (row) => visible(row.reason ?? "")],
    ["Key", (row) => visible(row.key.map(part).join("; ")), "key"],
    ["Rate", (row) => (row.rate ? `${row.rate} ${row.algorithm ?? ""}` : "–")],
    ["Retry after", (row) => (row.applies && !row.allowed ? seconds(row.retry_after) : "–"), "number"],
    ["Source", (row) => row.source ?? "–"],
    ...(rows.some((row) => row.candidate) ? [["Candidate", (row) => (row.candidate
      ? `${row.candidate.rate} ${row.candidate.allowed ? "would admit" : "would refuse"}` : "–")]] : []),
  ];
  byId("try-result").replaceChildren(element("div", { class: "card" }, summary),
    element("div", { class: "card scroll" }, table(columns, rows, "The policy has no limits.")));
}
