// A clock that the script sets: Date.now() is the wall clock, timers follow the time that really
// passes.
let wallMs = 1_700_002_800_000;
let trueMs = wallMs;
let timers = [];
Date.now = () => wallMs;
global.setTimeout = (run, ms = 0) => {
  const timer = { at: trueMs + ms, run, every: 0, unref() { return timer; }, ref() { return timer; } };
  timers.push(timer);
  return timer;
};
global.setInterval = (run, ms) => {
  const timer = global.setTimeout(run, ms);
  timer.every = ms;
  return timer;
};
global.clearTimeout = global.clearInterval = (timer) => { timers = timers.filter((one) => one !== timer); };

// Moves to a time, and runs the timers that are due by then.
exports.set = (newTrueMs, newWallMs) => {
  for (;;) {
    const due = timers.filter((timer) => timer.at <= newTrueMs).sort((a, b) => a.at - b.at)[0];
    if (!due) break;
    timers = timers.filter((one) => one !== due);
    [wallMs, trueMs] = [wallMs + due.at - trueMs, due.at];
    due.run();
    if (due.every) timers.push(Object.assign(due, { at: due.at + due.every }));
  }
  [trueMs, wallMs] = [newTrueMs, newWallMs];
};

// Each line of standard input: true time and wall clock in microseconds, and a cost.
exports.play = async (decide) => {
  const lines = require("node:fs").readFileSync(0, "utf8").trim().split("\n");
  for (const line of lines) {
    const [trueUs, wallUs, cost] = line.split(" ").map(Number);
    exports.set(trueUs / 1000, wallUs / 1000);
    const { admitted, retryMs, remaining } = await decide(cost);
    const retry = !admitted && retryMs !== undefined ? Math.round(retryMs * 1000) : "-";
    console.log(`${admitted ? 1 : 0} ${retry} ${remaining}`);
  }
};
