// node test/browser.mjs KIBITZ [--pictures DIR] [--only NAME] [--all]: uses every page in a real browser, against a real server
// with real models, and fails on a wrong result, a console error, or a serious fault that axe-core finds. Each page at
// desktop width in light and at phone width in dark; with --all in further combinations.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";

const kibitz = path.resolve(process.argv[2]);
const flag = (name) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : null);
const pictures = flag("--pictures");
const only = flag("--only");
const root = path.resolve(import.meta.dirname, "../..");
const golden = process.env.KIBITZ_GOLDEN ?? path.join(root, "tests/golden");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(path.join(os.tmpdir(), "kibitz-web-"));
const run = path.join(folder, "runs/growing");

const sizes = { desktop: { width: 1440, height: 900 }, tablet: { width: 1024, height: 768 }, phone: { width: 390, height: 844 } };
let written = 0;  // Lines of the run.
const patience = 60000;  // Milliseconds; a busy machine is slow, not broken.

function prepare() {
  mkdirSync(run, { recursive: true });
  writeFileSync(path.join(run, "metrics.jsonl"), Array.from({ length: 30 }, () => metric(written++)).join(""));
  execFileSync(kibitz, ["policy", "precompute", path.join(golden, "policy/rows/chess_position_evaluations.parquet"), "--out",
    path.join(folder, "data/evals"), "--quiet"]);
}

function metric(i) {
  const loss = 2 + 20 / (4 + i);
  const line = { step: 10 * (i + 1), kind: "train", total_loss: loss, move_acc: 1 - loss / 8, lr: 1e-3 * Math.min(1, i / 5), grad_norm: 2 - i / 40 };
  const val = i % 10 === 9 ? JSON.stringify({ step: line.step, kind: "val", total_loss: loss + 0.1, move_acc: 0.9 - loss / 8 }) + "\n" : "";
  return JSON.stringify(line) + "\n" + val;  // Loss falls with each.
}

async function serve() {
  const server = spawn(kibitz, ["serve", "--port", "0", "--models", path.join(golden, "decoder/tiny.pt"), "--models", path.join(root, "models"),
    "--data", path.join(folder, "data"), "--data", path.join(root, "examples"), "--data", path.join(golden, "twenty48"),
    "--runs", path.join(folder, "runs"), "--results", path.join(folder, "series"), "--engines", "stockfish"], { stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise((resolve, reject) => {
    server.stdout.once("data", (data) => resolve(String(data).split("\n")[0]));
    server.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  return { server, address: address.replace(/\/$/, "") };
}

const tiny = "decoder:tiny.pt%3Fthink%3D1";

// Each page at work: what a visitor does, and what must be seen.
const scenes = {
  async think(page) {
    await page.goto(`${site}/think?player=${tiny}&max_variations=4&max_depth=3&fen=${encodeURIComponent(
      "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5Q2/PPPP1PPP/RNB1K1NR w KQkq - 4 4")}`);
    await page.waitForSelector(".verdict.instinct strong");
    await page.locator("main").press(" ");
    await page.waitForSelector(".verdict.after strong");
    const move = await page.textContent(".verdict.after strong");
    assert.match(move, /^([NBRQK]?[a-h]?[1-8]?x?[a-h][1-8](=[NBRQ])?|O-O(-O)?)[+#]?$/);
    assert.ok((await page.locator(".tree .chip").count()) >= 2);
    assert.match(await page.textContent(".counter"), /tokens\/s/);
    await page.locator(".tree .chip").last().hover();
    await page.waitForSelector(".board.imagined");
    assert.match(await page.textContent(".board-caption"), /the board it imagined after/);
    return "think";
  },
  async play(page) {
    await page.goto(`${site}/think?player=policy:policy-small&side=white`);
    await page.waitForSelector(".verdict.instinct strong");
    await drag(page, "e2", "e4");
    await page.waitForFunction(() => document.querySelectorAll(".moves .move").length === 2, null, { timeout: patience });
    assert.equal(await page.textContent(".moves .move"), "e4");
    await page.locator("main").press("u");
    await page.waitForFunction(() => document.querySelectorAll(".moves .move").length === 0, null, { timeout: patience });
    await page.fill("#fen", "1. d4 d5 2. c4");
    await page.locator("#fen").press("Enter");
    await page.waitForFunction(() => document.querySelectorAll(".moves .move").length >= 3, null, { timeout: patience });
    assert.match(decodeURIComponent(page.url()), /moves=d2d4,d7d5,c2c4/);
    await page.fill("#fen", "<img src=x onerror=alert(1)>");
    await page.locator("#fen").press("Enter");
    await page.waitForSelector(".toast.error");
    assert.equal(await page.locator(".toast.error img").count(), 0);
    return null;
  },
  async training(page) {
    await page.goto(`${site}/training?runs=growing`);
    await page.waitForSelector(".multiple canvas");
    const before = await page.textContent(".multiple h3 .number");
    appendFileSync(path.join(run, "metrics.jsonl"), Array.from({ length: 10 }, () => metric(written++)).join(""));
    await page.waitForFunction((text) => document.querySelector(".multiple h3 .number").textContent !== text, before, { timeout: patience });
    assert.match(await page.textContent(".runs"), /alive/);
    return "training";
  },
  async arena(page) {
    await page.goto(`${site}/arena?white=policy:policy-small&black=negamax%3Fdepth%3D2&opening=${encodeURIComponent("C65 Ruy Lopez: Berlin Defence")}`);
    await page.waitForSelector(".moves .move");
    const before = await page.locator(".moves .move").count();
    for (let i = 1; i <= 3; i++) {
      await page.locator("main").press("s");
      await page.waitForFunction((n) => document.querySelectorAll(".moves .move").length === n, before + i, { timeout: patience });
    }
    assert.ok((await page.locator(".bars li").count()) > 0);
    await page.selectOption("#player0", "random");
    await page.selectOption("#player1", "negamax?depth=2");
    await page.fill("#pairs", "2");
    await page.click("#start-series");
    await page.waitForFunction(() => /4 of 4 games/.test(document.querySelector(".series")?.textContent ?? ""), null, { timeout: 4 * patience });
    await page.waitForSelector(".series-list li");
    return "arena";
  },
  async data(page) {
    await page.goto(`${site}/data?set=evals`);
    await page.waitForSelector(".bars li");
    // At least two steps, and on to a position whose moves are neither all alike nor one a mate: others do not change.
    const spread = () => page.$$eval(".bars .number", (all) => parseFloat(all[0].textContent) - parseFloat(all.at(-1).textContent));
    let index = 0;
    for (let apart = 0; index < 2 || apart < 5 || apart > 90; apart = await spread()) {
      await page.locator("main").press("ArrowRight");
      index++;
      await page.waitForFunction((n) => document.querySelector("#index").value === n, String(index), { timeout: patience });
    }
    const cold = await page.textContent(".bars .number");
    await page.locator("#temperature").fill("2.9");
    await page.waitForFunction((text) => document.querySelector(".bars .number").textContent !== text, cold, { timeout: patience });
    assert.match(page.url(), new RegExp(`index=${index}&`));
    assert.match(page.url(), /temperature=/);
    return "data";
  },
  async twenty48(page) {
    await page.goto(`${site}/2048?seed=3`);
    await page.waitForSelector(".wish i");
    await page.locator("main").press("s");
    await page.waitForFunction(() => document.querySelector(".game2048").textContent.includes("1 moves"), null, { timeout: patience });
    for (const key of ["ArrowLeft", "ArrowUp", "ArrowLeft", "ArrowRight", "ArrowDown"]) await page.locator("main").press(key);
    await page.waitForFunction(() => Number(/(\d+) moves/.exec(document.querySelector(".game2048").textContent)[1]) >= 3, null, { timeout: patience });
    await page.locator("main").press(" ");
    await page.waitForFunction(() => Number(/(\d+) moves/.exec(document.querySelector(".game2048").textContent)[1]) >= 30, null, { timeout: patience });
    await page.locator("main").press(" ");
    return "2048";
  },
  async models(page) {
    await page.goto(`${site}/models`);
    await page.waitForSelector(".model");
    assert.match(await page.textContent(".cards"), /policy-small/);
    await page.locator("main").press("?");
    await page.waitForSelector("dialog.keys[open]");
    await page.locator("dialog.keys button").click();
    return "models";
  },
};

async function drag(page, from, to) {
  const box = await page.locator(".board-frame").boundingBox();
  const at = (square) => [box.x + (square.charCodeAt(0) - 97 + 0.5) * box.width / 8, box.y + (56 - square.charCodeAt(1) + 0.5) * box.height / 8];
  await page.mouse.move(...at(from));
  await page.mouse.down();
  await page.mouse.move(...at(to), { steps: 6 });
  await page.mouse.up();
}

async function visit(browser, name, size, scheme) {
  const touch = size === "phone";
  const context = await browser.newContext({ viewport: sizes[size], colorScheme: scheme, hasTouch: touch, reducedMotion: "reduce" });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const faults = [];
  const expected = name === "play" ? /400/ : /$^/;  // It sends a wrong position on purpose.
  page.on("console", (message) => { if (["error", "warning"].includes(message.type()) && !expected.test(message.text())) faults.push(message.text()); });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (request) => { if (!request.url().startsWith(site) && !request.url().startsWith("data:")) faults.push(`asks ${request.url()}`); });
  const picture = await scenes[name](page);
  await page.waitForTimeout(200);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `scrolls sideways by ${wide} px`);
  if (pictures && picture) await page.screenshot({ path: path.join(pictures, `${picture}-${size}-${scheme}.png`) });
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  for (const each of violations.filter((v) => ["serious", "critical"].includes(v.impact))) {
    faults.push(`axe: ${each.id}: ${each.help}: ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  }
  assert.deepEqual(faults, []);
  await context.close();
}

async function weight(browser) {
  const page = await (await browser.newContext()).newPage();
  let bytes = 0;
  page.on("response", async (response) => { bytes += (await response.body().catch(() => "")).length; });
  await page.goto(`${site}/think`);
  await page.waitForSelector(".board-frame svg");
  await page.waitForTimeout(500);
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  console.log(`page weight ${Math.round(bytes / 1000)} kB, first contentful paint ${Math.round(paint)} ms`);
  assert.ok(bytes < 500_000);
}

let failed = 0;
prepare();
const { server, address: site } = await serve();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
try {
  for (const name of Object.keys(scenes)) {
    if (only && only !== name) continue;
    for (const [size, scheme] of [["desktop", "light"], ["phone", "dark"], ...(process.argv.includes("--all") ? [["desktop", "dark"], ["tablet", "light"], ["phone", "light"]] : [])]) {
      try {
        await visit(browser, name, size, scheme);
        console.log(`ok   ${name} ${size} ${scheme}`);
      } catch (error) {
        failed++;
        console.log(`FAIL ${name} ${size} ${scheme}\n${error.message}`);
      }
    }
  }
  if (!only) await weight(browser);
} finally {
  await browser.close();
  server.kill();
  rmSync(folder, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
