// The limits of the policy in force: their modes, and the lints of the file.

import { call } from "./api.js";
import { byId, clockTime, coded, element, number, refresh, table, visible } from "./dom.js";

let report;

export function start(tell) {
  report = tell;
  byId("reload").addEventListener("click", () => tell(async () => {
    const done = await call("POST", "v1/reload", {});
    await load();
    return `Reloaded: generation ${done.generation}.`;
  }));
}

const keyNames = (key) => {
  const parts = key.first_of ?? [key];
  return parts.map((names) => names.join(" + ") || "all requests").join(", or else ");
};

export async function load() {
  const policy = await call("GET", "v1/policy");
  const reload = policy.last_reload
    ? ` Last reload ${clockTime(policy.last_reload.time)}: ${policy.last_reload.error ?? "in force"}.` : "";
  byId("policy-origin").replaceChildren(
    visible(`${policy.file ?? "Built-in policy"}, generation ${policy.generation}.${reload}`));
  const columns = [
    ["Limit", (limit) => visible(limit.name), "name"],
    ["Key", (limit) => visible(keyNames(limit.key)), "key"],
    ["Rate", (limit) => limit.rate, "name"],
    ["Algorithm", (limit) => limit.algorithm ?? "–", "name"],
    ["Tiers", (limit) => Object.entries(limit.tiers ?? {}).map(([tier, numbers]) => `${tier}: ${numbers.rate}`).join(", ") || "–"],
    ...(policy.limits.some((limit) => limit.candidate) ? [["Candidate", candidateText]] : []),
    ["Mode", modeSwitch, "actions"],
  ];
  refresh(byId("policy-limits"), table(columns, policy.limits, "The policy has no limits: every request is admitted."));
  const lints = policy.lints.map((lint) => element("div", { class: "lint" },
    element("span", { class: "pill warn" }, lint.code), " ", coded(`line ${lint.line}: ${lint.message}`),
    element("div", { class: "quiet" }, coded(lint.help ?? ""))));
  byId("policy-lints").replaceChildren(...(lints.length > 0 ? lints
    : [element("p", { class: "quiet" }, "None: the file has no warnings.")]));
}

/** The effect of a candidate: "10/d would refuse 0.4 % more, 11 keys". */
function candidateText(limit) {
  const { candidate } = limit;
  if (!candidate) return "–";
  const all = candidate.same + candidate.would_refuse + candidate.would_admit;
  if (all === 0) return `${candidate.rate}: no requests yet`;
  const share = (count) => `${Number((100 * count / all).toPrecision(2))} %`;
  const changes = [
    candidate.would_refuse > 0 ? `would refuse ${share(candidate.would_refuse)} more` : "",
    candidate.would_admit > 0 ? `would admit ${share(candidate.would_admit)} more` : "",
  ].filter((change) => change !== "");
  if (changes.length === 0) return `${candidate.rate}: would change none of ${number(all)} requests`;
  return `${candidate.rate}: ${changes.join(", ")}, ${number(candidate.keys)} ${candidate.keys === 1 ? "key" : "keys"}`;
}

function modeSwitch(limit) {
  const options = ["enforce", "shadow", "off"].map((mode) =>
    element("option", { value: mode, selected: mode === limit.mode },
      mode === limit.configured ? `${mode} (file)` : mode));
  const select = element("select", { "aria-label": `Mode of ${limit.name}` }, ...options);
  select.addEventListener("change", () => report(async () => {
    const path = `v1/limits/${encodeURIComponent(limit.name)}/mode`;
    const mode = select.value;
    select.blur();
    const done = mode === limit.configured
      ? await call("DELETE", path)
      : await call("PUT", path, { mode });
    await load();
    const scope = done.scope === "fleet" ? "on all nodes" : "on this node";
    return `${limit.name} is now ${done.after} ${scope}.`;
  }, load));
  return select;
}
