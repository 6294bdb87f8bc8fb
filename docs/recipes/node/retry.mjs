// Wait as long as Tollgate says, plus a random time. Node 20 or later, nothing to install.
import { realpathSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const TOLLGATE = process.env.TOLLGATE_URL ?? "http://127.0.0.1:8081";
const TIMEOUT_MS = Number(process.env.TOLLGATE_TIMEOUT ?? 0.25) * 1000;
const WAIT_AT_MOST_MS = Number(process.env.TOLLGATE_WAIT ?? 30) * 1000; // in all; someone is waiting for us, too
// What to do when Tollgate does not answer: true continues without it, false tries again until WAIT_AT_MOST_MS.
const FAIL_OPEN = (process.env.FAIL ?? "open") === "open";

/** True once the request is admitted; false if that would take too long or no wait helps. */
export async function waitUntilAllowed(attributes, cost = 1) {
  const deadline = performance.now() + WAIT_AT_MOST_MS;
  for (;;) {
    let answer, body, wait;
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
      if (FAIL_OPEN) return true;
      wait = 1;
    }
    if (wait === undefined) {
      if (answer.ok) return true;
      if (answer.status !== 429 && answer.status !== 503) throw new Error(`${body.field}: ${body.detail}`);
      wait = answer.headers.get("retry-after");
      if (wait === null) return false;
    }
    // Clients refused together would return together: a random wait of up to half as long again spreads them.
    const pause = Number(wait) * 1000 * (1 + Math.random() / 2);
    if (performance.now() + pause > deadline) return false;
    await sleep(pause);
  }
}

// Only when this file is the program: importing it spends nothing.
if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  const user = process.argv[2] ?? "42";
  for (let number = 1; number <= 3; number++) {
    const sent = await waitUntilAllowed({ user, action: "send" });
    console.log(`${number}: ${sent ? "sent" : "given up"}`);
  }
  const sent = await waitUntilAllowed({ user, action: "send" }, 100);
  console.log(`100 at once: ${sent ? "sent" : "given up"}`);
}
