// Training: the curves of runs as they grow.
import "uplot/dist/uPlot.min.css";
import uPlot from "uplot";
import { get } from "../api";
import { ago, count, fill, h, svg } from "../dom";
import { Sample, type Checkpoint } from "../sample";
import { emptyState, fail, remember, title, type Page } from "../shell";

interface RunText { id: string; changed: number; idle_seconds: number; bytes: number; checkpoints: number }
interface Log { from: number; next: number; more: boolean; lines: Record<string, unknown>[] }
interface Metrics extends RunText, Log { timing: Log; newest?: Checkpoint }
interface Curve { steps: number[]; values: number[] }
interface Run { text: RunText; next: number; timingNext: number; train: Map<string, Curve>; val: Map<string, Curve>; newest?: Checkpoint }

const dashes: number[][] = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 5]];
const first = ["total_loss", "loss"];
const told = /(loss|acc|top_?\d|^lr$|grad_norm|_mae|per_s|speed|score|ratio)/;
const manyRuns = 8;  // From so many on, a field finds runs by name.
const skipped = new Set(["step", "epoch", "kind", "closing", "time", "seconds"]);
const every = 2000;

class TrainingPage implements Page {
  readonly keys: [string, string][] = [["l", "logarithmic scale"]];
  private runs = new Map<string, Run>();
  private chosen: string[] = [];
  private smooth = 0.6;
  private log = false;
  private plots = new Map<string, { plot: uPlot; box: HTMLElement; value: HTMLElement }>();
  private list = h("div", { class: "runs", role: "group", "aria-label": "runs" });
  private grid = h("div", { class: "multiples" });
  private rest = h("div", { class: "multiples" });  // What hardly tells anything.
  private samples = new Map<string, Sample>();
  private sampleList = h("div", { class: "samples" });
  private sampleBox = h("details", { class: "more", ontoggle: () => this.showSamples() });
  private position = "";  // FEN that the checkpoints are asked about; "": the usual start.
  private wanted = "";    // Part of the names of runs to list.
  private find = h("input", { type: "search", id: "find-run", placeholder: "find a run", "aria-label": "find a run by name",
    oninput: () => { this.wanted = this.find.value.toLowerCase(); this.showRuns(this.listed); } });
  private listed: RunText[] = [];
  private timer = 0;
  private left = false;

  mount(root: HTMLElement, params: URLSearchParams) {
    this.left = false;
    this.runs.clear();
    this.plots.clear();
    fill(this.grid);
    fill(this.rest);
    this.chosen = (params.get("runs") ?? "").split(",").filter(Boolean);
    this.smooth = Number(params.get("smooth") ?? 0.6);
    this.log = params.get("log") === "1";
    this.position = params.get("fen") ?? "";
    this.samples.clear();
    fill(this.sampleList);
    this.sampleBox.open = params.get("thoughts") === "1";
    const position = h("input", { id: "sample-fen", class: "fen", value: this.position, placeholder: "FEN; empty: the usual start", spellcheck: "false",
      onchange: () => { this.position = position.value.trim(); this.save(); this.showSamples(); } });
    fill(this.sampleBox, h("summary", {}, "What the newest checkpoints think"),
      h("label", { class: "sample-position small", for: "sample-fen" }, "position ", position), this.sampleList);
    const slider = h("input", { type: "range", min: 0, max: 0.99, step: 0.01, value: this.smooth, id: "smooth",
      oninput: () => { this.smooth = Number(slider.value); this.save(); this.draw(); } });
    const log = h("input", { type: "checkbox", id: "log", checked: this.log,
      onchange: () => { this.log = log.checked; this.save(); this.rebuild(); } });
    root.append(h("h1", { class: "visually-hidden" }, "Training"), this.find, this.list,
      h("div", { class: "training-tools" },
        h("label", { for: "smooth" }, "smoothing", slider), h("label", { for: "log" }, log, "logarithmic"),
        h("span", { class: "small" }, "lines: training · dots: validation · ring: its best step")), this.sampleBox, this.grid,
      h("details", { class: "more", ontoggle: () => this.resize() }, h("summary", {}, "All other numbers of the log"), this.rest));
    void this.refresh();
    const resize = () => this.resize();
    const theme = () => this.rebuild();
    addEventListener("resize", resize);
    addEventListener("themechange", theme);
    return () => {
      this.left = true;
      clearTimeout(this.timer);
      for (const sample of this.samples.values()) sample.stop();
      removeEventListener("resize", resize);
      removeEventListener("themechange", theme);
      for (const { plot } of this.plots.values()) plot.destroy();
    };
  }

  key(key: string): boolean {
    if (key !== "l") return false;
    (document.getElementById("log") as HTMLInputElement).click();
    return true;
  }

  private save() {
    title(`${this.chosen.join(", ") || "no run"} · Training`);
    remember({ runs: this.chosen.join(","), thoughts: this.sampleBox.open ? 1 : null, fen: this.position || null, smooth: this.smooth === 0.6 ? null : this.smooth, log: this.log ? 1 : null });
  }

  // Reads what is new, again and again.
  private async refresh() {
    try {
      const { runs, folders } = await get<{ runs: RunText[]; folders: string[] }>("runs");
      if (this.left) return;
      if (!runs.length) {
        fill(this.list, emptyState("No runs found", h("span", {}, "Looked in ", folders.join(", ") || "no folder", ". Start one, then serve its folder: ",
          h("code", {}, "kibitz serve --runs checkpoints"))));
      } else {
        runs.sort((a, b) => a.idle_seconds - b.idle_seconds);
        if (!this.chosen.length) this.chosen = [runs[0]!.id];
        for (const text of runs) {
          const known = this.runs.get(text.id);
          if (known) known.text = text;
          else this.runs.set(text.id, { text, next: 0, timingNext: 0, train: new Map(), val: new Map() });
        }
        await Promise.all(this.chosen.map((id) => this.read(id)));
        if (this.left) return;
        this.listed = runs;
        this.showRuns(runs);
        this.draw();
        this.showSamples();
      }
    } catch (error) { fail(error); }
    if (!this.left) this.timer = window.setTimeout(() => void this.refresh(), every);
  }

  private async read(id: string) {
    const run = this.runs.get(id);
    if (!run) return;
    for (let more = true; more;) {
      const metrics = await get<Metrics>(`runs/${id.split("/").map(encodeURIComponent).join("/")}/metrics?from=${run.next}&timing_from=${run.timingNext}`);
      if (metrics.from < run.next || metrics.timing.from < run.timingNext) {
        // Started over. What came now goes on from where it was asked: ask again from the beginning.
        const whole = metrics.from === 0 && metrics.timing.from === 0;
        run.train.clear();
        run.val.clear();
        run.next = run.timingNext = 0;
        if (!whole) continue;
      }
      run.next = metrics.next;
      run.timingNext = metrics.timing.next;
      run.newest = metrics.newest;
      for (const line of [...metrics.lines, ...metrics.timing.lines]) addLine(run, line);
      more = metrics.more || metrics.timing.more;
    }
  }

  private showRuns(runs: RunText[]) {
    this.find.hidden = runs.length < manyRuns;
    const shown = runs.filter((text) => this.chosen.includes(text.id) || text.id.toLowerCase().includes(this.wanted));
    fill(this.list, ...shown.map((text) => {
      const place = this.chosen.indexOf(text.id);
      const steps = place >= 0 ? lastStep(this.runs.get(text.id)!) : 0;
      const state = text.idle_seconds < 120
        ? h("span", { class: "small alive" }, `alive ${ago(text.idle_seconds)}`)
        : h("span", { class: "small" }, steps ? `stopped at step ${count(steps)}, ${ago(text.idle_seconds)}` : `last written ${ago(text.idle_seconds)}`);
      return h("button", { class: "run-chip", "aria-pressed": String(place >= 0), onclick: () => this.toggle(text.id) },
        place >= 0 ? svg("svg", { viewBox: "0 0 28 8", "aria-hidden": "true" }, svg("line", { x1: 0, y1: 4, x2: 28, y2: 4,
          stroke: "currentColor", "stroke-width": 2, "stroke-dasharray": dashes[place % dashes.length]!.join(" ") })) : null,
        text.id, state);
    }));
  }

  // Of each chosen run what its newest checkpoint thinks; a newer one is asked again.
  private showSamples() {
    if (!this.sampleBox.open || this.left) return;
    this.save();
    for (const [id, sample] of this.samples) {
      if (this.chosen.includes(id)) continue;
      sample.stop();
      sample.element.remove();
      this.samples.delete(id);
    }
    for (const id of this.chosen) {
      let sample = this.samples.get(id);
      if (!sample) {
        this.samples.set(id, (sample = new Sample(id)));
        this.sampleList.append(sample.element);
      }
      void sample.show(this.runs.get(id)?.newest, this.position);
    }
  }

  private toggle(id: string) {
    this.chosen = this.chosen.includes(id) ? this.chosen.filter((each) => each !== id) : [...this.chosen, id];
    this.save();
    this.rebuild();
    clearTimeout(this.timer);
    void this.refresh();
  }

  private rebuild() {
    for (const { plot } of this.plots.values()) plot.destroy();
    this.plots.clear();
    fill(this.grid);
    fill(this.rest);
    this.draw();
  }

  private names(): string[] {
    const names = new Set<string>();
    for (const id of this.chosen) for (const set of [this.runs.get(id)?.train, this.runs.get(id)?.val]) {
      for (const name of set?.keys() ?? []) names.add(name);
    }
    const rank = (name: string) => (first.includes(name) ? 0 : name.endsWith("_acc") || name.includes("top") ? 1
      : name.endsWith("_loss") ? 2 : name === "lr" ? 3 : 4);
    return [...names].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  }

  private draw() {
    for (const name of this.names()) {
      const [data, series] = this.seriesOf(name);
      const known = this.plots.get(name);
      if (known && known.plot.series.length === series.length) known.plot.setData(data);
      else this.plots.set(name, this.addPlot(name, data, series));
      const latest = this.chosen.map((id) => this.runs.get(id)?.train.get(name)?.values.at(-1)).find((value) => value !== undefined);
      this.plots.get(name)!.value.textContent = latest === undefined ? "" : number(latest);
    }
  }

  private addPlot(name: string, data: uPlot.AlignedData, series: uPlot.Series[]) {
    this.plots.get(name)?.plot.destroy();
    this.plots.get(name)?.box.remove();
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--soft"), line = style.getPropertyValue("--line");
    const value = h("span", { class: "number" });
    const box = h("section", { class: "multiple", "aria-label": name }, h("h3", {}, name.replaceAll("_", " "), value));
    (told.test(name) ? this.grid : this.rest).append(box);
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    const plot = new uPlot({
      width: Math.max(80, box.clientWidth - 24), height: 200, series,
      cursor: { sync: { key: "training" }, points: { size: 6 } },
      legend: { show: false },
      scales: { x: { time: false }, y: { distr: this.log ? 3 : 1 } },
      axes: [{ ...axis, size: 28, values: (_, steps) => steps.map((step) => count(step)) },
        { ...axis, size: 56, values: (_, values) => values.map((each) => (each === null ? "" : number(each))) }],
      hooks: { setCursor: [(self) => this.read_off(self, value, name)], draw: [(self) => this.ring(self, name)] },
    }, data, box);
    return { plot, box, value };
  }

  // The values under the cursor, in the heading.
  private read_off(self: uPlot, out: HTMLElement, name: string) {
    const at = self.cursor.idx;
    if (at === null || at === undefined) return;
    const parts: string[] = [];
    this.chosen.forEach((id, i) => {
      const values = self.data[1 + 2 * i]?.[at];
      if (typeof values === "number") parts.push(this.chosen.length > 1 ? `${id} ${number(values)}` : number(values));
    });
    if (parts.length) out.textContent = `step ${count(self.data[0]![at]!)}: ${parts.join(" · ")}`;
    out.title = name;
  }

  // A ring around the best validation of each run.
  private ring(self: uPlot, name: string) {
    if (!first.includes(name)) return;
    const context = self.ctx;
    for (const id of this.chosen) {
      const curve = this.runs.get(id)?.val.get(name);
      if (!curve?.values.length) continue;
      const best = curve.values.indexOf(Math.min(...curve.values));
      context.save();
      context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--win");
      context.lineWidth = 2 * devicePixelRatio;
      context.beginPath();
      context.arc(self.valToPos(curve.steps[best]!, "x", true), self.valToPos(curve.values[best]!, "y", true), 7 * devicePixelRatio, 0, 7);
      context.stroke();
      context.restore();
    }
  }

  private seriesOf(name: string): [uPlot.AlignedData, uPlot.Series[]] {
    const accent = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    const all = new Set<number>();
    for (const id of this.chosen) for (const kind of ["train", "val"] as const) {
      for (const step of this.runs.get(id)?.[kind].get(name)?.steps ?? []) all.add(step);
    }
    const steps = [...all].sort((a, b) => a - b);
    const data: (number | null)[][] = [steps];
    const series: uPlot.Series[] = [{}];
    this.chosen.forEach((id, i) => {
      const run = this.runs.get(id);
      data.push(aligned(steps, smoothed(run?.train.get(name), this.smooth)), aligned(steps, run?.val.get(name)));
      series.push({ stroke: accent, width: 1.75, dash: dashes[i % dashes.length], spanGaps: true, points: { show: false } },
        { stroke: accent, paths: () => null, points: { show: true, size: 5, fill: accent } });
    });
    return [data as uPlot.AlignedData, series];
  }

  private resize() {
    for (const { plot, box } of this.plots.values()) plot.setSize({ width: Math.max(80, box.clientWidth - 24), height: 200 });
  }
}

function addLine(run: Run, line: Record<string, unknown>) {
  const step = Number(line.step);
  if (!Number.isFinite(step)) return;
  const curves = line.kind === "val" ? run.val : run.train;
  for (const [name, value] of Object.entries(line)) {
    if (skipped.has(name) || typeof value !== "number") continue;
    let curve = curves.get(name);
    if (!curve) curves.set(name, (curve = { steps: [], values: [] }));
    while (curve.steps.length && curve.steps.at(-1)! >= step) { curve.steps.pop(); curve.values.pop(); }  // Resumed.
    curve.steps.push(step);
    curve.values.push(value);
  }
}

function lastStep(run: Run): number {
  let last = 0;
  for (const curve of run.train.values()) last = Math.max(last, curve.steps.at(-1) ?? 0);
  return last;
}

// The moving average that TensorBoard shows, corrected for the start.
function smoothed(curve: Curve | undefined, weight: number): Curve | undefined {
  if (!curve || weight <= 0) return curve;
  let mean = 0, norm = 0;
  const values = curve.values.map((value) => {
    mean = weight * mean + (1 - weight) * value;
    norm = weight * norm + (1 - weight);
    return mean / norm;
  });
  return { steps: curve.steps, values };
}

function aligned(steps: number[], curve: Curve | undefined): (number | null)[] {
  if (!curve) return steps.map(() => null);
  const at = new Map(curve.steps.map((step, i) => [step, curve.values[i]!]));
  return steps.map((step) => at.get(step) ?? null);
}

function number(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000) return count(Math.round(value));
  if (size >= 10) return value.toFixed(1);
  if (size >= 0.001) return String(Number(value.toPrecision(3)));
  return value.toExponential(1);
}

export const page: Page = new TrainingPage();
