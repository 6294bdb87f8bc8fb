// The counters of the last 15 minutes, and the rates between them.

const SPAN_S = 900;
const SPAN_MIN_S = 120;
const STEP_S = 5;

/**
 * Counters since the node's start, oldest first: {time, limits, classes, limit}. `limits` and
 * `classes` have an array of figures for each name.
 */
let points = [];
let latest;
let before;

const limitFigures = (limit) => [
  limit.admitted, limit.refused, limit.shadow_refused,
  limit.fail_open + limit.local_admitted, limit.fail_closed + limit.local_refused,
];

const classFigures = ({ admitted, shed, shadow_shed, in_flight, at_upstream, left }) =>
  [admitted, shed.fleet, shed.adaptive, shed.queue, shadow_shed, in_flight, at_upstream, left];

const byName = (list, read) => Object.fromEntries(list.map((one) => [one.name, read(one)]));

export function history(data) {
  points = data.points;
  before = points.at(-1);
}

export function add(figures) {
  const point = {
    time: Date.parse(figures.time) / 1000,
    limits: byName(figures.limits, limitFigures),
    classes: byName(figures.classes, classFigures),
    limit: figures.adaptive?.limit,
  };
  if (points.length === 0 || point.time - points.at(-1).time >= STEP_S) {
    points.push(point);
    points = points.filter((one) => point.time - one.time <= SPAN_S + STEP_S);
  }
  before = latest ?? before ?? point;
  latest = point;
}

/** Rates per second between two points, of one name or of all. A restart resets counts to zero. */
function rates(kind, name, from, to) {
  const seconds = Math.max(0.001, to.time - from.time);
  const sums = [];
  for (const [one, values] of Object.entries(to[kind] ?? {})) {
    if (name && one !== name) continue;
    const earlier = from[kind]?.[one] ?? [];
    values.forEach((value, n) => {
      sums[n] = (sums[n] ?? 0) + Math.max(0, value - (earlier[n] ?? 0)) / seconds;
    });
  }
  return sums;
}

/** The current rates. `kind` is `limits` or `classes`. */
export const now = (kind, name) => rates(kind, name, before, latest);

/** Rates over time, as points of a chart. */
export const overTime = (kind, name) =>
  points.slice(1).map((point, n) => ({ time: point.time, values: rates(kind, name, points[n], point) }));

/** The points, the current one included. */
export const all = () => (points.at(-1) === latest ? points : [...points, latest]);

/** The time range of a chart; shorter for a node that has just started. */
export function span() {
  const to = latest.time;
  return [Math.min(to - SPAN_MIN_S, Math.max(to - SPAN_S, points[0].time)), to];
}
