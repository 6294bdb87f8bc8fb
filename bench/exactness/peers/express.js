// express-rate-limit with its memory store, as a middleware: express.js COUNT WINDOW_SECONDS
const clock = require("./clock.js");
const { rateLimit } = require("express-rate-limit");
const [limit, seconds] = process.argv.slice(2).map(Number);
const limiter = rateLimit({ windowMs: seconds * 1000, limit, legacyHeaders: false, standardHeaders: "draft-6", validate: false });
const app = { get: () => false };
clock.play((cost) => new Promise((done) => {
  const headers = {};
  const finish = (admitted) => {
    const retryMs = headers["retry-after"] && Number(headers["retry-after"]) * 1000;
    done({ admitted, retryMs, remaining: Number(headers["ratelimit-remaining"]) });
  };
  const response = {
    headersSent: false,
    writableEnded: false,
    setHeader: (name, value) => { headers[name.toLowerCase()] = value; },
    status() { return response; },
    send: () => finish(false),
    on() { return response; },
  };
  limiter({ ip: "192.0.2.7", app, headers: {}, cost }, response, () => finish(true));
}));
