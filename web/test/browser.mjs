// node test/browser.mjs KIBITZ [--pictures DIR] [--only NAME] [--all]: uses every page in a real browser, against a real server
// with real models, and fails on a wrong result, a console error, or a serious fault that axe-core finds. Each page at
// desktop width in light and at phone width in dark; with --all in further combinations.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { appendFileSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
const combinations = [["desktop", "light"], ["phone", "dark"],
  ...(process.argv.includes("--all") ? [["desktop", "dark"], ["tablet", "light"], ["tablet", "dark"], ["phone", "light"]] : [])];
let written = 0;  // Lines of the run.
const patience = 60000;  // Milliseconds; a busy machine is slow, not broken.

function prepare() {
  mkdirSync(run, { recursive: true });
  writeFileSync(path.join(run, "metrics.jsonl"), Array.from({ length: 30 }, () => metric(written++)).join(""));
  execFileSync(kibitz, ["policy", "precompute", path.join(golden, "policy/rows/chess_position_evaluations.parquet"), "--out",
    path.join(folder, "data/evals"), "--quiet"]);
  // A run with a checkpoint, so that its thoughts can be seen.
  copyFileSync(path.join(golden, "decoder/tiny.pt"), path.join(run, "checkpoint_step_000000100.pt"));
}

function metric(i) {
  const loss = 2 + 20 / (4 + i);
  appendFileSync(path.join(run, "timing.jsonl"), JSON.stringify({ step: 10 * (i + 1), seconds: i, tokens_per_second: 5000 + 10 * i }) + "\n");
  const line = { step: 10 * (i + 1), kind: "train", total_loss: loss, move_acc: 1 - loss / 8, lr: 1e-3 * Math.min(1, i / 5), grad_norm: 2 - i / 40 };
  const val = i % 10 === 9 ? JSON.stringify({ step: line.step, kind: "val", total_loss: loss + 0.1, move_acc: 0.9 - loss / 8 }) + "\n" : "";
  return JSON.stringify(line) + "\n" + val;  // Loss falls with each.
}

async function serve(...further) {
  const server = spawn(kibitz, ["serve", "--port", "0", "--models", path.join(golden, "decoder/tiny.pt"), "--models", path.join(root, "models"),
    "--data", path.join(folder, "data"), "--data", path.join(root, "examples"), "--data", path.join(golden, "twenty48"),
    "--runs", path.join(folder, "runs"), "--results", path.join(folder, "series"), "--engines", "stockfish", ...further], { stdio: ["ignore", "pipe", "inherit"] });
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
    await page.goto(`${site}/think?player=decoder:decoder-small%3Fthink%3D1&fen=${encodeURIComponent(
      "r1b2rk1/ppp2p1p/5Bp1/2bp4/3n2qP/3B1N2/PP3PP1/RN1Q1K1R w - - 0 8")}`);
    await page.waitForSelector(".verdict.instinct strong");
    await page.locator(".raw summary").click();
    await page.locator("main").press(" ");
    await page.waitForSelector(".verdict.after strong");
    // The root's board, then the network's: each a block of 68 tokens, with what was kept of its draft.
    await page.waitForSelector(".strip .board-token .kept");
    assert.match(await page.textContent(".strip"), /^board · 68start_think/);
    assert.ok((await page.locator(".strip .move-token").count()) >= 2);
    assert.equal(await page.locator(".caret").count(), 0);
    await page.locator(".raw summary").click();
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
  async editor(page) {
    await page.goto(`${site}/think?player=${tiny}`);
    await page.waitForSelector(".verdict.instinct strong");
    await page.locator("main").press("e");
    await page.click("#clear");
    await dragPiece(page, "K", "g1");
    await page.click("#use-position");
    await page.waitForSelector(".toast.error");  // A king is missing; the editor stays.
    await page.click(".toast.error button");
    await dragPiece(page, "k", "e8");
    await dragPiece(page, "r", "h8");
    await dragPiece(page, "Q", "a5");
    await drag(page, "g1", "g2");
    await page.getByLabel("Black short").check();
    await page.getByRole("button", { name: "Black to move" }).click();
    await page.click("#use-position");
    await page.waitForFunction(() => document.querySelector("#fen").value.startsWith("4k2r/8/8/Q7/8/8/6K1/8 b k - 0 1"), null, { timeout: patience });
    assert.equal(await page.locator(".editor:visible").count(), 0);
    await page.locator("main").press("o");
    await page.fill("#opening-search", "c65");
    await page.locator(".opening-list button").first().click();
    await page.waitForFunction(() => document.querySelectorAll(".moves .move").length >= 6, null, { timeout: patience });
    await page.locator("main").press("e");
    await page.waitForSelector(".tray-piece");
    return "editor";
  },
  async engine(page) {
    // Who asks before the position is there gets the thought all the same.
    await page.route("**/api/v1/position", async (route) => { await new Promise((done) => setTimeout(done, 1000)); await route.continue(); });
    await page.goto(`${site}/think?player=engine:stockfish%3Fmovetime%3D100`);
    await page.waitForSelector("#player-movetime");
    await page.locator("main").press(" ");
    await page.waitForSelector(".verdict.after strong");
    await page.unroute("**/api/v1/position");
    await page.fill("#player-movetime", "50");
    await page.locator("#player-movetime").press("Tab");
    // The address follows once the position is there.
    await page.waitForFunction(() => /movetime=50/.test(decodeURIComponent(location.href)), null, { timeout: patience });
    await page.getByRole("button", { name: "Think", exact: true }).click();
    await page.waitForSelector(".verdict.after strong");
    return null;
  },
  async training(page) {
    await page.goto(`${site}/training?runs=growing`);
    await page.waitForSelector(".multiple canvas");
    const before = await page.textContent(".multiple h3 .number");
    appendFileSync(path.join(run, "metrics.jsonl"), Array.from({ length: 10 }, () => metric(written++)).join(""));
    await page.waitForFunction((text) => document.querySelector(".multiple h3 .number").textContent !== text, before, { timeout: patience });
    assert.match(await page.textContent(".runs"), /alive/);
    await page.waitForSelector("section[aria-label=tokens_per_second]");
    await page.getByText("What the newest checkpoints think").click();
    await page.waitForFunction(() => /after thinking: \S/.test(document.querySelector(".sample")?.textContent ?? ""), null, { timeout: patience });
    assert.match(await page.textContent(".sample h3"), /step 100/);
    assert.match(page.url(), /thoughts=1/);
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
    await page.waitForFunction(() => !document.querySelector("#stop-series"), null, { timeout: patience });
    // A series outlives the page: a reload finds it, and it can be stopped within a game.
    await page.selectOption("#player0", "negamax?depth=2");
    await page.fill("#player0-depth", "6");
    await page.fill("#pairs", "50");
    await page.click("#start-series");
    await page.waitForSelector("#stop-series");
    await page.reload();
    await page.waitForSelector("#stop-series");
    await page.click("#stop-series");
    await page.waitForFunction(() => !document.querySelector("#stop-series"), null, { timeout: patience });
    await page.selectOption("#player0", "policy:policy-small");
    for (let i = 4; i <= 5; i++) {
      await page.locator("main").press("s");
      await page.waitForFunction((n) => document.querySelectorAll(".moves .move").length === n, before + i, { timeout: patience });
    }
    await page.locator(".series-list button").first().click();
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
  async pack(page) {
    await page.goto(`${site}/data?set=pack`);
    await page.waitForSelector(".score-curve polyline");
    const text = () => page.textContent(".panel p.number");
    const first = await text();
    await page.locator("main").press("ArrowRight");
    await page.locator("main").press("ArrowRight");
    assert.notEqual(await text(), first);
    assert.match(page.url(), /step=2/);
    await page.reload();
    await page.waitForSelector(".score-curve polyline");
    assert.match(await text(), /points before it/);
    assert.match(page.url(), /step=2/);
    await page.locator("main").press("ArrowLeft");
    await page.locator("main").press("ArrowLeft");
    assert.equal(await text(), first);
    await page.locator(".score-curve svg").click();  // In its middle.
    assert.doesNotMatch(await text(), /^step [0-9] of/);
    return "pack";
  },
  async sequence(page) {
    await page.goto(`${site}/data?set=decoder/searches.parquet`);
    await page.waitForSelector(".sequence button");
    await page.locator(".sequence button", { hasText: "board 1" }).first().hover();
    await page.waitForFunction(() => document.querySelector(".board-caption")?.textContent === "board 1", null, { timeout: patience });
    await page.locator("main").press("ArrowRight");
    await page.waitForFunction(() => document.querySelector("#index").value === "1", null, { timeout: patience });
    return null;
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
    await page.waitForTimeout(300);  // A move that was asked for ends.
    const moves = () => page.evaluate(() => Number(/(\d+) moves/.exec(document.querySelector(".game2048").textContent)[1]));
    const before = await moves();
    const box = await page.locator(".tiles").boundingBox();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    for (const [dx, dy] of [[-80, 0], [0, -80], [80, 0], [0, 80]]) {
      await page.mouse.move(x, y);
      await page.mouse.down();
      await page.mouse.move(x + dx, y + dy, { steps: 3 });
      await page.mouse.up();
    }
    await page.waitForFunction((n) => Number(/(\d+) moves/.exec(document.querySelector(".game2048").textContent)[1]) > n, before, { timeout: patience });
    return "2048";
  },
  async models(page) {
    await page.goto(`${site}/models`);
    await page.waitForSelector(".model");
    assert.match(await page.textContent(".cards"), /policy-small/);
    const card = page.locator(".model", { hasText: "policy-small" });
    await card.locator("summary").first().click();
    await card.locator(".markdown h3").waitFor();
    assert.doesNotMatch(await card.locator(".markdown").textContent(), /^#|\*\*|\|--/m);
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

async function dragPiece(page, letter, to) {
  const tray = page.locator(`.tray-piece[data-piece="${letter}"]`);
  await tray.evaluate((element) => element.scrollIntoView({ block: "center" }));
  const from = await tray.boundingBox();
  await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2);
  await page.mouse.down();
  const box = await page.locator(".board-frame").boundingBox();
  await page.mouse.move(box.x + (to.charCodeAt(0) - 97 + 0.5) * box.width / 8, box.y + (56 - to.charCodeAt(1) + 0.5) * box.height / 8, { steps: 6 });
  await page.mouse.up();
}

// On its own: a server that asks for a token, and one that ends under a page.
const alone = {
  async token(browser) {
    const { server, address } = await serve("--token", "open-sesame");
    try {
      const context = await browser.newContext();
      const page = await context.newPage();
      const bare = address.replace(/\/?\?token=.*/, "");
      assert.match(address, /\?token=open-sesame/);
      assert.equal((await page.goto(`${bare}/think`)).status(), 401);
      assert.match(await page.textContent("body"), /asks for a token/);
      await page.goto(address);
      await page.waitForSelector(".verdict.instinct strong");
      assert.doesNotMatch(page.url(), /token/);
      assert.equal(await page.evaluate(() => document.cookie), "");  // Scripts cannot read it.
      await page.goto(`${bare}/models`);
      await page.waitForSelector(".model");
      await context.close();
    } finally { server.kill(); }
  },
  async disconnect(browser) {
    const { server, address } = await serve();
    let again = null;
    try {
      const page = await (await browser.newContext()).newPage();
      page.setDefaultTimeout(patience);
      await page.goto(`${address}/think?player=engine:stockfish%3Fmovetime%3D30000`);
      await page.waitForSelector("#player-movetime");
      const states = async () => (await (await fetch(`${address}/api/v1/jobs`)).json()).jobs.map((job) => job.state);
      const until = async (fits) => { for (let i = 0; i < 600 && !fits(await states()); i++) await new Promise((done) => setTimeout(done, 50)); assert.ok(fits(await states())); };
      // Who leaves stops their work.
      await page.locator("main").press(" ");
      await until((all) => all.at(-1) === "running");
      await page.goto("about:blank");
      await until((all) => all.at(-1) === "stopped");
      // A server that ends says so, and so does the page.
      await page.goto(`${address}/think?player=engine:stockfish%3Fmovetime%3D30000`);
      await page.waitForSelector("#player-movetime");
      await page.locator("main").press(" ");
      await until((all) => all.at(-1) === "running");
      const begun = Date.now();
      const ended = new Promise((resolve) => server.once("exit", resolve));
      server.kill("SIGINT");
      await ended;
      console.log(`     the server ended in ${Date.now() - begun} ms with work under way`);
      await page.waitForSelector(".toast.error");
      // The job may have told first that it ended; then the page says it when it asks again.
      const offline = page.locator(".toast.error", { hasText: /does not answer.*still running/ });
      if (await offline.count() === 0) await page.getByRole("button", { name: "Think", exact: true }).click();
      await offline.first().waitFor();
      // At once again, on the same port: the page goes on.
      again = spawn(kibitz, ["serve", "--port", new URL(address).port, "--engines", "stockfish"], { stdio: ["ignore", "pipe", "inherit"] });
      await new Promise((resolve, reject) => { again.stdout.once("data", resolve); again.once("exit", (code) => reject(new Error(`started again: ended with ${code}`))); });
      await page.fill("#player-movetime", "50");
      await page.locator("#player-movetime").press("Tab");
      await page.getByRole("button", { name: "Think", exact: true }).click();
      await page.waitForSelector(".verdict.after strong");
      await page.context().close();
    } finally { server.kill(); again?.kill(); }  // A server that lives on would keep the tests waiting.
  },
};

async function visit(browser, name, size, scheme) {
  const touch = size === "phone";
  const context = await browser.newContext({ viewport: sizes[size], colorScheme: scheme, hasTouch: touch, reducedMotion: "reduce" });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const faults = [];
  const expected = ["play", "editor"].includes(name) ? /400/ : /$^/;  // It sends a wrong position on purpose.
  page.on("console", (message) => { if (["error", "warning"].includes(message.type()) && !expected.test(message.text())) faults.push(message.text()); });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (request) => { if (!request.url().startsWith(site) && !request.url().startsWith("data:")) faults.push(`asks ${request.url()}`); });
  const picture = await scenes[name](page);
  await page.waitForTimeout(200);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `scrolls sideways by ${wide} px`);
  if (name === "arena") await page.evaluate(() => scrollTo(0, 0));
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
  const bodies = [];
  page.on("response", (response) => { bodies.push(response.body().catch(() => "")); });
  let bytes = 0;
  const paints = [];
  for (let i = 0; i < 7; i++) {
    await page.goto(`${site}/think`);
    await page.waitForSelector(".board-frame svg");
    if (i === 0) {
      await page.waitForSelector(".verdict.instinct strong");
      page.removeAllListeners("response");
      for (const body of bodies) bytes += (await body).length;
    }
    const paint = await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    paints.push(await paint.jsonValue());
  }
  paints.sort((a, b) => a - b);
  console.log(`page weight ${Math.round(bytes / 1000)} kB, first contentful paint ${Math.round(paints[0])} ms at best, ${Math.round(paints[3])} ms in the middle of 7`);
  assert.ok(bytes > 100_000 && bytes < 500_000);
  assert.ok(paints[0] < 300);  // The best: others share the machine.
}

let failed = 0;
prepare();
const { server, address: site } = await serve();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
try {
  for (const name of Object.keys(scenes)) {
    if (only && only !== name) continue;
    for (const [size, scheme] of combinations) {
      try {
        await visit(browser, name, size, scheme);
        console.log(`ok   ${name} ${size} ${scheme}`);
      } catch (error) {
        failed++;
        console.log(`FAIL ${name} ${size} ${scheme}\n${error.message}`);
      }
    }
  }
  for (const name of Object.keys(alone)) {
    if (only && only !== name) continue;
    try {
      await alone[name](browser);
      console.log(`ok   ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAIL ${name}\n${error.message}`);
    }
  }
  if (!only || only === "weight") await weight(browser);
} finally {
  await browser.close();
  server.kill();
  rmSync(folder, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
