// Reserve tokens before a call to a model, settle what it used. Node 20 or later, nothing to install.
const TOLLGATE = process.env.TOLLGATE_URL ?? "http://127.0.0.1:8081";
const TIMEOUT_MS = Number(process.env.TOLLGATE_TIMEOUT ?? 0.25) * 1000;

class Refused extends Error {
  constructor(wait) {
    super(wait === null ? "no wait will help" : `try again in ${wait} s`);
    this.wait = wait;
  }
}

async function post(path, body) {
  const answer = await fetch(TOLLGATE + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  return [answer.status, await answer.json()];
}

/** Runs `work`, which says how much it really used. An exception gives everything back. */
export async function reserved(attributes, estimate, work, ttl = "2m") {
  const [status, answer] = await post("/v1/reserve", { attributes, cost: estimate, ttl });
  if (status === 429 || status === 503) throw new Refused(answer.retry_after ?? null);
  if (status !== 200) throw new Error(`${answer.field}: ${answer.detail}`);
  const { reservation } = answer;
  let result;
  try {
    result = await work();
  } catch (error) {
    await post("/v1/cancel", { reservation });
    throw error;
  }
  // Settling twice does no harm, so a call that timed out may simply be made again.
  const [, ended] = await post("/v1/settle", { reservation, cost: result.used });
  console.log(`charged ${ended.charged}, ${ended.limits[0].remaining} left`);
  return result;
}

/** Your model goes here; it says how many tokens it used. */
async function askModel(prompt) {
  if (!prompt) throw new RangeError("nothing to answer");
  return { text: prompt.toUpperCase(), used: 120 };
}

const who = { user: process.argv[2] ?? "42", action: "complete" };
const { text } = await reserved(who, 500, () => askModel("hello"));
console.log(text);
try {
  await reserved(who, 500, () => askModel(""));
} catch (error) {
  console.log(`${error.message}; nothing charged`);
}
try {
  await reserved(who, 2000, () => askModel("unreachable"));
} catch (error) {
  console.log(`refused: ${error.message}`);
}
