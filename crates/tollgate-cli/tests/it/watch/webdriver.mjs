// A WebDriver session with Chromium, over plain HTTP.
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";

const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";

export class Browser {
  static async start() {
    const browser = new Browser();
    browser.driver = spawn("chromedriver", ["--port=0"], { stdio: ["ignore", "pipe", "ignore"] });
    // It names the port that it got once it listens. What it prints later is read and dropped.
    const port = await new Promise((resolve, reject) => {
      let printed = "";
      browser.driver.on("exit", () => reject(new Error(`chromedriver did not start: ${printed}`)));
      browser.driver.stdout.setEncoding("utf8").on("data", (text) => {
        printed += text;
        const found = printed.match(/started successfully on port (\d+)/);
        if (found) resolve(found[1]);
      });
    });
    browser.base = `http://127.0.0.1:${port}`;
    const args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-device-scale-factor=1", "--hide-scrollbars"];
    const capabilities = { alwaysMatch: { browserName: "chrome", "goog:chromeOptions": { binary: "/usr/bin/chromium", args }, "goog:loggingPrefs": { browser: "ALL" } } };
    const made = await browser.call("POST", "/session", { capabilities });
    browser.base += `/session/${made.sessionId}`;
    return browser;
  }
  async call(method, path, body) {
    const response = await fetch(this.base + path, { method, body: body === undefined ? undefined : JSON.stringify(body) });
    const { value } = await response.json();
    if (value?.error) throw new Error(`${path}: ${value.error}: ${value.message.split("\n")[0]}`);
    return value;
  }
  open(url) { return this.call("POST", "/url", { url }); }
  run(script, ...args) { return this.call("POST", "/execute/sync", { script, args }); }
  async wait(script, ...args) {
    for (let tries = 0; ; tries++) {
      const value = await this.run(script, ...args);
      if (value) return value;
      if (tries > 200) throw new Error(`not within 20 s: ${script} ${JSON.stringify(args)}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  async find(selector) { return (await this.call("POST", "/element", { using: "css selector", value: selector }))[ELEMENT]; }
  async click(selector) { await this.call("POST", `/element/${await this.find(selector)}/click`, {}); }
  async type(selector, text) { await this.call("POST", `/element/${await this.find(selector)}/value`, { text }); }
  cdp(cmd, params) { return this.call("POST", "/goog/cdp/execute", { cmd, params }); }
  async look(width, height, scheme) {
    await this.cdp("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 500 });
    await this.cdp("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
  }
  async picture(path) { await writeFile(path, Buffer.from(await this.call("GET", "/screenshot"), "base64")); }
  async log() { return (await this.call("POST", "/se/log", { type: "browser" })).filter((one) => one.level === "SEVERE"); }
  async end() { try { await this.call("DELETE", ""); } catch {} this.driver.kill(); }
}
