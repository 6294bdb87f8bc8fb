// Ask Tollgate before doing the work. Node 20 or later, nothing to install.
import { realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";

const TOLLGATE = process.env.TOLLGATE_URL ?? "http://127.0.0.1:8081";
// What to do when Tollgate does not answer: true admits all requests, false refuses them. Choose for each call site: a
// page view is worth more than its limit, a password guess is not.
const FAIL_OPEN = (process.env.FAIL ?? "open") === "open";
const TIMEOUT_MS = Number(process.env.TOLLGATE_TIMEOUT ?? 0.25) * 1000; // a limiter that takes longer is worse than none

/** Whether the request is admitted, and the seconds to wait if not (null: no wait helps). */
export async function check(attributes, cost = 1) {
  let answer, body;
  try {
    answer = await fetch(`${TOLLGATE}/v1/check`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ attributes, cost }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    body = await answer.json();
  } catch (error) { // refused connection, time-out, reset, half an answer
    console.error(`tollgate did not answer (${error.name})`);
    return { allowed: FAIL_OPEN, wait: 1 };
  }
  if (answer.ok) return { allowed: true, wait: 0 };
  if (answer.status === 429 || answer.status === 503) { // refused, or a limit that fails closed could not be decided
    const wait = answer.headers.get("retry-after");
    return { allowed: false, wait: wait === null ? null : Number(wait) };
  }
  throw new Error(`${body.field}: ${body.detail}`); // the call itself is wrong
}

// Only when this file is the program: importing it spends nothing.
if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  const user = process.argv[2] ?? "42";
  for (let number = 1; number <= 3; number++) {
    const { allowed, wait } = await check({ user, action: "view" });
    console.log(allowed ? `${number}: allowed` : `${number}: refused, try again in ${wait} s`);
  }
}
