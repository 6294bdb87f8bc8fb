// rate-limiter-flexible in memory: flexible.js COUNT WINDOW_SECONDS
const clock = require("./clock.js");
const { RateLimiterMemory } = require("rate-limiter-flexible");
const [points, duration] = process.argv.slice(2).map(Number);
const limiter = new RateLimiterMemory({ points, duration });
clock.play(async (cost) => {
  try {
    const { remainingPoints } = await limiter.consume("key", cost);
    return { admitted: true, remaining: remainingPoints };
  } catch (refused) {
    if (refused instanceof Error) throw refused;
    const retryMs = cost <= points ? refused.msBeforeNext : undefined;
    return { admitted: false, retryMs, remaining: refused.remainingPoints };
  }
});
