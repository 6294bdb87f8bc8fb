// Reserve tokens before a call to a model, and settle the tokens that it used. Node 20 or later, nothing to install.
import { realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";

const TOLLGATE = process.env.TOLLGATE_URL ?? "http://127.0.0.1:8081";
const TIMEOUT_MS = Number(process.env.TOLLGATE_TIMEOUT ?? 0.25) * 1000;
// What to do when Tollgate does not answer: true does the work without a reservation, false does not.
const FAIL_OPEN = (process.env.FAIL ?? "open") === "open";

export class Refused extends Error {
  constructor(wait) {
    super(wait === null ? "no wait will help" : `try again in ${wait} s`);
    this.wait = wait;
  }
}

/** Status and answer; nulls when Tollgate does not answer. */
async function post(path, body) {
  try {
    const answer = await fetch(TOLLGATE + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return [answer.status, await answer.json()];
  } catch (error) { // refused connection, time-out, reset, half an answer
    console.error(`tollgate did not answer (${error.name})`);
    return [null, null];
  }
}

/** Settles or cancels. Repeating the call does no harm, so it is repeated if there is no answer. */
async function end(path, body) {
  for (let attempt = 0; attempt < 3; attempt++) {
    const [status, answer] = await post(path, body);
    if (status === 200) return answer;
    if (status !== null) { // ended already, expired, or lost with the memory of a Tollgate that started again
      console.error(`not ended: ${answer.detail}`);
      return null;
    }
  }
  console.error("not ended: the estimate stays charged");
  return null;
}

/** Runs `work`, which returns the tokens that it used. An exception cancels the reservation. */
export async function reserved(attributes, estimate, work, ttl = "2m") {
  const [status, answer] = await post("/v1/reserve", { attributes, cost: estimate, ttl });
  if (status === 429 || status === 503) throw new Refused(answer.retry_after ?? null);
  if (status === null && !FAIL_OPEN) throw new Refused(1);
  if (status !== null && status !== 200) throw new Error(`${answer.field}: ${answer.detail}`);
  const reservation = answer?.reservation;
  let result;
  try {
    result = await work();
  } catch (error) {
    if (reservation) await end("/v1/cancel", { reservation });
    throw error;
  }
  const ended = reservation && await end("/v1/settle", { reservation, cost: result.used });
  if (ended) console.log(`charged ${ended.charged}, ${ended.limits[0].remaining} left`);
  return result;
}

/** Replace this with your model; it returns the number of tokens used. */
async function askModel(prompt) {
  if (!prompt) throw new RangeError("nothing to answer");
  return { text: prompt.toUpperCase(), used: 120 };
}

// Only when this file is the program: importing it spends nothing.
if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  const who = { user: process.argv[2] ?? "42", action: "complete" };
  for (const [prompt, estimate] of [["hello", 500], ["", 500], ["a long story", 2000]]) {
    try {
      const { text } = await reserved(who, estimate, () => askModel(prompt));
      console.log(text);
    } catch (error) {
      console.log(error instanceof Refused ? `refused: ${error.message}` : `${error.message}; nothing charged`);
    }
  }
}
