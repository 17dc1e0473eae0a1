// Drives Chromium for tests/web: one JSON command a line on standard input, one answer a line on standard output.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({
  executablePath: process.argv[2],
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
let context = null;
let page = null;
const heard = [];

const commands = {
  async open({ url, width = 1280, height = 900, scheme = "light" }) {
    await context?.close();
    // Injected by the test itself, axe needs to be let in; the page's own policy is tested over HTTP.
    context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
    page = await context.newPage();
    heard.length = 0;
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && heard.push(message.text()));
    page.on("pageerror", (error) => heard.push(String(error)));
    page.on("request", (request) => request.url().startsWith(new URL(url).origin) || heard.push(`left: ${request.url()}`));
    await page.goto(url);
  },
  async look({ width, height, scheme }) {
    if (width) await page.setViewportSize({ width, height });
    if (scheme) await page.emulateMedia({ colorScheme: scheme });
  },
  async wait({ expression, timeout_ms = 20000 }) {
    // Not waitForFunction: it needs eval in the page, which the content security policy forbids.
    for (const ends = Date.now() + timeout_ms; !(await page.evaluate(expression)); ) {
      if (Date.now() > ends) throw new Error(`not within ${timeout_ms} ms: ${expression}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  },
  async eval({ expression }) {
    return page.evaluate(expression);
  },
  async click({ selector }) {
    await page.click(selector, { timeout: 10000 });
  },
  async press({ keys }) {
    for (const key of keys) await page.keyboard.press(key);
  },
  async fill({ selector, text }) {
    await page.fill(selector, text, { timeout: 10000 });
  },
  async shot({ path, full = false }) {
    await page.screenshot({ path, fullPage: full });
  },
  async axe() {
    // As an evaluation, which a content security policy does not stop.
    await page.evaluate(axe);
    const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    return found.violations.map(({ id, impact, help, nodes }) => ({ id, impact, help, where: nodes.map((each) => each.html.slice(0, 160)) }));
  },
  async heard() {
    return [...heard];
  },
  async heap() {
    const session = await context.newCDPSession(page);
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    return usedSize;
  },
  async busy() {
    const session = await context.newCDPSession(page);
    await session.send("Performance.enable");
    const { metrics } = await session.send("Performance.getMetrics");
    return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...given } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ result: (await commands[command](given)) ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error).slice(0, 2000) }));
  }
}
await browser.close();
