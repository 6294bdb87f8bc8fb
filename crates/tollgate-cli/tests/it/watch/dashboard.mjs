// What an operator does in the dashboard, in Chromium.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Browser } from "./webdriver.mjs";

const { ADMIN, CHECK, TOKEN, FOLDER, PICTURES } = process.env;
const EVIL = "<img src=x onerror=alert(1)>\u0007\u202eevil";

async function check(attributes, cost = 1) {
  const body = JSON.stringify({ attributes, cost });
  const response = await fetch(CHECK, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  return response.status;
}

/** Traffic for a while: some users are refused, one by one address logs in too often. */
async function traffic(rounds) {
  for (let round = 0; round < rounds; round++) {
    const users = ["alice", "bob", "carol", `guest-${round % 7}`];
    await Promise.all(users.map((user) => check({ user, path: "/", ip: "198.51.100.4" })));
    if (round % 2 === 0) await check({ user: "mallory", path: "/login", ip: "203.0.113.9" });
    if (round % 3 === 0) await check({ user: "batch", path: "/export", ip: "198.51.100.5" }, 3);
    if (round % 5 === 0) await check({ user: EVIL, path: "/", ip: "198.51.100.6" }, 12);
  }
}

const text = (browser, id) => browser.run("return document.getElementById(arguments[0]).textContent", id);
const shows = (browser, id, words) =>
  browser.wait("return document.getElementById(arguments[0]).textContent.includes(arguments[1])", id, words);

/** Pictures of a page; of some also dark, and as a phone has it. */
async function pictures(browser, page) {
  if (!PICTURES) return;
  const all = [["", 1200, 860, "light"], ["-dark", 1200, 860, "dark"], ["-phone", 390, 844, "light"]];
  for (const [name, width, height, scheme] of all.slice(0, ["overview", "keys"].includes(page) ? 3 : 1)) {
    await browser.look(width, height, scheme);
    // Figures of this second should not be zero.
    for (let n = 0; n < 5; n++) {
      await traffic(4);
      await new Promise((resolve) => setTimeout(resolve, 350));
    }
    await browser.picture(join(PICTURES, `dashboard-${page}${name}.png`));
  }
  await browser.look(1200, 860, "light");
}

async function openPage(browser, page) {
  await browser.click(`#tabs a[href="#${page}"]`);
  await browser.wait("return !document.getElementById(arguments[0]).hidden", `page-${page}`);
}

/** The button with this text in the row of a key. */
async function press(browser, key, button) {
  await browser.wait(`
    const row = [...document.querySelectorAll("#keys-lists tr")].find((row) => row.textContent.includes(arguments[0]));
    const button = [...(row?.querySelectorAll("button") ?? [])].find((one) => one.textContent === arguments[1]);
    button?.click();
    return button !== undefined`, key, button);
}

async function signIn(browser) {
  await browser.open(ADMIN);
  await browser.wait("return document.getElementById('token-dialog').open");
  await browser.type("#token-input", "wrong");
  await browser.click("#token-form button");
  await shows(browser, "token-error", "not the token");
  await browser.type("#token-input", TOKEN);
  await browser.click("#token-form button");
  await shows(browser, "health", "ready");
  const kept = await browser.run("return [sessionStorage.length, localStorage.length, document.cookie]");
  assert.deepEqual(kept, [1, 0, ""], "the token stays in the tab");
}

async function seeFigures(browser) {
  await traffic(40);
  await shows(browser, "overview-limits", "per-user");
  await browser.wait("return document.querySelector('#chart svg .area') !== null");
  const refused = `
    const row = [...document.querySelectorAll("#overview-limits tr")].find((row) => row.textContent.startsWith("per-user"));
    return Number(row.querySelector("[data-label='Refused in all']").textContent.replaceAll(",", ""))`;
  await browser.wait(`${refused} > 0`);
  const before = await browser.run(refused);
  await traffic(20);
  await browser.wait(`${refused} > arguments[0]`, before);
}

async function changeKeys(browser) {
  await openPage(browser, "keys");
  await shows(browser, "keys-lists", "user=alice");
  await shows(browser, "keys-lists", "ip=~");
  // A key is text, whatever it holds.
  await shows(browser, "keys-lists", "<img src=x onerror=alert(1)>\\u{07}\\u{202e}evil");
  assert.equal(await browser.run("return document.querySelectorAll('main img').length"), 0);
  await pictures(browser, "keys");
  await press(browser, "user=alice", "Inspect");
  await shows(browser, "key-body", "40/min");
  await browser.click("#key-block");
  await shows(browser, "key-body", "until");
  await new Promise((resolve) => setTimeout(resolve, 200));
  if (PICTURES) await browser.picture(join(PICTURES, "dashboard-key.png"));
  assert.equal(await check({ user: "alice", path: "/" }, 0), 429, "blocked at any cost");
  await browser.click("#key-unblock");
  await browser.wait("return !document.getElementById('key-body').textContent.includes('until')");
  await browser.click("#key-reset");
  await shows(browser, "key-body", "0 of 40");
  assert.equal(await check({ user: "alice", path: "/" }), 200, "reset");
  await browser.click("#key-close");
  await press(browser, "onerror", "Block 10 min");
  await shows(browser, "notice", "Blocked until");
  assert.equal(await check({ user: EVIL, path: "/" }, 0), 429, "a key is blocked by its real value");
  // A hashed key is known to the node that showed it.
  await press(browser, "ip=~", "Inspect");
  await shows(browser, "key-body", "12/min");
  await browser.click("#key-close");
}

async function watchDecisions(browser) {
  await openPage(browser, "decisions");
  await browser.click("#tail-refused");
  await browser.click("#tail-toggle");
  await shows(browser, "tail-rows", "Waiting");
  await traffic(6);
  await shows(browser, "tail-rows", "login/ip");
  assert.ok(!(await text(browser, "tail-rows")).includes("admitted"));
  await pictures(browser, "decisions");
  await browser.click("#tail-toggle");
}

async function switchModes(browser) {
  await openPage(browser, "limits");
  await shows(browser, "policy-lints", "TG");
  const select = `
    const select = document.querySelector("#policy-limits select[aria-label='Mode of per-user']");
    select.value = arguments[0];
    select.dispatchEvent(new Event("change"));`;
  await browser.wait("return document.querySelector(\"#policy-limits select[aria-label='Mode of per-user']\") !== null");
  await browser.run(select, "off");
  await shows(browser, "notice", "per-user is now off");
  await pictures(browser, "limits");
  for (let n = 0; n < 50; n++) assert.equal(await check({ user: "dora", path: "/" }), 200, "off");
  await browser.run(select, "enforce");
  await shows(browser, "notice", "per-user is now enforce");
}

async function reloadUnderIt(browser) {
  const file = join(FOLDER, "tollgate.yaml");
  const policy = await readFile(file, "utf8");
  await writeFile(file, policy.replace("limits:", "limits:\n  - {name: \"new <b>\", key: [user], rate: 7/min}"));
  await browser.click("#reload");
  await shows(browser, "policy-limits", "new <b>");
  await shows(browser, "policy-limits", "7/min");
  await writeFile(file, "limits: nonsense");
  await browser.click("#reload");
  await browser.wait("return !document.getElementById('notice').hidden && !document.getElementById('notice').classList.contains('good')");
  await writeFile(file, policy);
  await browser.click("#reload");
  await shows(browser, "notice", "Reloaded");
}

async function tryRequest(browser) {
  await openPage(browser, "try");
  for (let n = 0; n < 15; n++) await check({ user: "bob", path: "/login", ip: "203.0.113.9" });
  await browser.type("#try-attributes", "user=bob\npath=/login\nip=203.0.113.9");
  await browser.click("#try-form button");
  await shows(browser, "try-result", "refused with 429");
  await shows(browser, "try-result", "login/ip");
  await shows(browser, "try-result", "it fits in");
  await pictures(browser, "try");
}

/** A keyboard reaches everything, and everything has a name. */
async function accessible(browser) {
  const unnamed = await browser.run(`
    const named = (one) => one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length > 0;
    return [...document.querySelectorAll("button, select, input, textarea, a")].filter((one) => !named(one)).map((one) => one.outerHTML)`);
  assert.deepEqual(unnamed, [], "controls without a name");
  const wide = await browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth");
  assert.ok(wide <= 0, `the page is ${wide} pixels too wide`);
}

const browser = await Browser.start();
try {
  await browser.look(1200, 860, "light");
  await signIn(browser);
  await seeFigures(browser);
  const until = Date.now() + (PICTURES ? 150_000 : 0);
  for (let n = 0; Date.now() < until; n++) {
    await traffic(4 + Math.round(4 * Math.sin(n / 25)));
    await new Promise((resolve) => setTimeout(resolve, 350));
  }
  await pictures(browser, "overview");
  await changeKeys(browser);
  await watchDecisions(browser);
  await switchModes(browser);
  await reloadUnderIt(browser);
  await tryRequest(browser);
  await openPage(browser, "system");
  await shows(browser, "system-cards", "memory");
  await pictures(browser, "system");
  await openPage(browser, "classes");
  await browser.wait("return !document.getElementById('classes-none').hidden");
  for (const page of ["overview", "keys", "decisions", "limits", "classes", "system", "try"]) {
    await openPage(browser, page);
    for (const width of [1200, 390]) {
      await browser.look(width, 844, "light");
      await accessible(browser);
    }
  }
  // A wrong token and a refused file are answered with 4xx, which a browser logs.
  const log = (await browser.log()).filter((line) => !line.message.includes("the server responded with a status of 4"));
  assert.deepEqual(log, [], "errors in the browser's console, such as of the content security policy");
  console.log("ok");
} finally {
  await browser.end();
}
