// The node itself: health, store, leases, upstreams, readers.

import { byId, element, facts, number, refresh, visible } from "./dom.js";

const pill = (is_good, good, bad) => element("span", { class: `pill ${is_good ? "good" : "bad"}` }, is_good ? good : bad);

const card = (title, ...content) => element("div", { class: "card" }, element("h3", {}, title), ...content);

export function figures(data) {
  if (byId("page-system").hidden) return;
  const cards = [health(data), store(data.store)];
  if (data.leases) cards.push(leases(data.leases));
  if (data.upstreams.length > 0) cards.push(upstreams(data.upstreams));
  cards.push(requests(data.requests), card("Readers", facts([
    ["Dashboards and tails", number(data.readers.streams)],
    ["Cut off, because they did not read", number(data.readers.stalled)],
  ])));
  refresh(byId("system-cards"), ...cards);
}

function health(data) {
  const problems = Object.entries(data.problems);
  return card("Health", facts([
    ["Takes traffic", pill(data.ready, "yes", "no")],
    ["Policy generation", number(data.generation)],
    ...problems.map(([subject, text]) => [subject, visible(text)]),
    ...(problems.length === 0 ? [["Problems", "none"]] : []),
  ]));
}

function store(store) {
  const errors = Object.entries(store.errors).filter(([, count]) => count > 0);
  const rows = [["Kind", store.kind]];
  if (store.kind === "memory") {
    rows.push(["Keys", number(store.keys)], ["Memory", `${(store.bytes / 1048576).toFixed(1)} MiB`],
      ["Evicted keys", number(store.evicted)]);
  } else {
    rows.push(["Circuit breaker", pill(!store.breaker_open, "closed", "open")],
      ["Clock leaps", number(store.clock_leaps)]);
  }
  rows.push(...(errors.length > 0 ? errors.map(([kind, count]) => [`Errors: ${kind}`, number(count)]) : [["Errors", "none"]]));
  return card("Store", facts(rows));
}

function leases(leases) {
  return card("Leases", facts([
    ["Keys", number(leases.keys)], ["Units held", number(leases.held)], ["Units granted", number(leases.granted)],
    ["Units spent", number(leases.spent)], ["Units returned", number(leases.returned)],
    ["Rollbacks", number(leases.rollbacks)], ["Grace period", pill(!leases.in_grace_period, "no", "yes")],
  ]));
}

function upstreams(list) {
  return card("Upstreams", facts(list.map((one) => [visible(one.name), element("span", {},
    `${number(one.in_flight)} in flight `, pill(one.state === "up", "up", one.state))])));
}

function requests(fronts) {
  const rows = Object.entries(fronts).flatMap(([front, outcomes]) =>
    Object.entries(outcomes).map(([outcome, count]) => [`${front}: ${outcome.replaceAll("_", " ")}`, number(count)]));
  return card("Requests since the start", rows.length > 0 ? facts(rows) : element("p", { class: "quiet" }, "none"));
}
