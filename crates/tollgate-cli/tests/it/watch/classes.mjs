// What an operator sees of an overload, in Chromium: a real gateway before an upstream of two workers.

import assert from "node:assert/strict";
import { Agent, createServer, get } from "node:http";
import { join } from "node:path";
import { Browser } from "./webdriver.mjs";

const { ADMIN, GATEWAY, TOKEN, UPSTREAM, PICTURES } = process.env;
const WORK_MS = 25;
const WORKERS = 2;

/** Serves one request after the other with each worker. */
function upstream() {
  const waiting = [];
  let busy = 0;
  const next = () => {
    while (busy < WORKERS && waiting.length > 0) {
      const response = waiting.shift();
      busy++;
      setTimeout(() => { busy--; response.end("done"); next(); }, WORK_MS);
    }
  };
  return createServer((request, response) => { waiting.push(response); next(); }).listen(UPSTREAM, "127.0.0.1");
}

const agent = new Agent({ keepAlive: true, maxSockets: 512 });

/** The status of a request. */
const send = (path) => new Promise((resolve) => {
  const request = get(GATEWAY + path, { agent }, (response) => {
    response.resume();
    response.on("end", () => resolve(response.statusCode));
  });
  request.on("error", () => resolve(0));
});

let perSecond = 0;
/** Requests by class and status. */
const seen = {};

/** Sends `perSecond` requests a second for ever: one of four is critical, one a batch job. */
function traffic() {
  const paths = ["/charges", "/", "/", "/reports"];
  let owed = 0;
  let place = 0;
  return setInterval(() => {
    for (owed += perSecond / 50; owed >= 1; owed--) {
      const path = paths[place++ % paths.length];
      send(path).then((status) => {
        const key = `${path} ${status}`;
        seen[key] = (seen[key] ?? 0) + 1;
      });
    }
  }, 20);
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Reads a cell of the table of classes, and compares it: arguments are the class and the column. */
const cell = (compare = "") => `
  const row = [...document.querySelectorAll("#classes-rows tr")].find((row) => row.textContent.startsWith(arguments[0]));
  const cell = row?.querySelector("[data-label='" + arguments[1] + "']");
  return (cell ? Number(cell.textContent.replaceAll(",", "")) : -1) ${compare}`;

async function signIn(browser) {
  await browser.open(`${ADMIN}#classes`);
  await browser.wait("return document.getElementById('token-dialog').open");
  await browser.type("#token-input", TOKEN);
  await browser.click("#token-form button");
  await browser.wait("return document.getElementById('classes-rows').textContent.includes('critical')");
}

async function pictures(browser) {
  const all = [["", 1200, 1230, "light"], ["-dark", 1200, 1230, "dark"], ["-phone", 390, 1120, "light"]];
  for (const [name, width, height, scheme] of all) {
    await browser.look(width, height, scheme);
    await sleep(2500);
    await browser.picture(join(PICTURES, `dashboard-classes${name}.png`));
  }
  await browser.look(1200, 860, "light");
}

const server = upstream();
const timer = traffic();
const browser = await Browser.start();
try {
  await browser.look(1200, 860, "light");
  await signIn(browser);
  const names = await browser.run("return [...document.querySelectorAll('#classes-rows td.name')].map((one) => one.textContent)");
  assert.deepEqual(names, ["critical", "normal", "batch"], "the most important first");
  // Half of what the upstream can do.
  perSecond = 40;
  await browser.wait(cell("> 0"), "normal", "Admitted /s");
  await browser.wait("return document.querySelector('#classes-chart .area.admitted') !== null");
  await sleep(PICTURES ? 40_000 : 0);
  assert.equal(await browser.run(cell(), "critical", "Shed in all"), 0);
  // Three times as much as it can do.
  perSecond = 240;
  await browser.wait(cell("> 0"), "batch", "Shed /s");
  await browser.wait("return document.querySelector('#classes-chart .area.refused, #classes-chart .area.open') !== null");
  await browser.wait("return document.querySelector('#flight-chart .line') !== null");
  await browser.wait("return /[1-9]\\d* of \\d+/.test(document.querySelector('#classes-tiles div:last-child dd').textContent)");
  const before = await browser.run(cell(), "batch", "Shed in all");
  await browser.wait(cell("> arguments[2]"), "batch", "Shed in all", before);
  await sleep(PICTURES ? 40_000 : 0);
  if (PICTURES) await pictures(browser);
  // One class alone.
  await browser.run(`
    const select = document.getElementById("classes-class");
    select.value = "critical";`);
  const offered = "return document.querySelector('#classes-tiles dd').firstChild.textContent";
  await browser.wait(`const rate = Number(document.querySelector('#classes-tiles dd').firstChild.textContent); return rate > 20 && rate < 120`);
  assert.ok(Number(await browser.run(offered)) < 120, "a quarter of all");
  perSecond = 0;
  await browser.wait(cell("=== 0"), "batch", "In flight");
  // What the page says of the end is what clients saw.
  await sleep(2500);
  const shedBatch = await browser.run(cell(), "batch", "Shed in all");
  assert.equal(shedBatch, seen["/reports 503"], JSON.stringify(seen));
  for (const width of [1200, 390]) {
    await browser.look(width, 844, "light");
    const wide = await browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth");
    assert.ok(wide <= 0, `the page is ${wide} pixels too wide`);
  }
  assert.deepEqual(await browser.log(), [], "errors in the browser's console");
  console.log("ok");
} finally {
  clearInterval(timer);
  await browser.end();
  agent.destroy();
  server.close();
}
