// Data: policy positions with their labels, decoder sequences, 2048 games.
import { get } from "../api";
import { BoardView, placementOf } from "../board";
import { count, fill, h, percent, svg } from "../dom";
import { emptyState, fail, remember, type Page } from "../shell";
import { Tiles } from "../tiles";

interface DataText { id: string; kind: string }
interface Label { uci: string; san?: string; probability: number }
interface Session { depth: number; knodes: number; lines: { uci: string; san?: string; cp?: number; mate?: number }[] }
interface Sample {
  sizes: Record<string, number>; split: string; index: number; fen: string; max_depth: number; label: Label[]; sessions: Session[];
  empty?: boolean;
}
interface TokenText { overridden?: boolean; token: string; block?: number; move?: string; target?: string; wl?: number; d?: number; masks: string[] }

const pathOf = (id: string) => id.split("/").map(encodeURIComponent).join("/");

class DataPage implements Page {
  readonly keys: [string, string][] = [
    ["← →", "the one before, the next; in a 2048 game its steps"], ["↑ ↓", "the 2048 game before, the next"], ["r", "a random one"],
    ["f", "flip the board"], ["/", "go to a number"]];
  private sets: DataText[] = [];
  private set: DataText | null = null;
  private index = 0;
  private split = "train";
  private temperature = 50;
  private strategy = "deepest";
  private minDepth = 0;
  private flipped = false;
  private sample: Sample | null = null;
  private asked = 0;
  private board!: BoardView;
  private stage = h("section", { class: "stage", "aria-label": "board" });
  private panel = h("section", { class: "panel", "aria-label": "data" });
  private body = h("div", { class: "panel" });

  mount(root: HTMLElement, params: URLSearchParams) {
    this.index = Number(params.get("index") ?? 0);
    this.split = params.get("split") ?? "train";
    this.temperature = Number(params.get("temperature") ?? 50);
    this.strategy = params.get("strategy") ?? "deepest";
    this.minDepth = Number(params.get("depth") ?? 0);
    this.flipped = params.get("flip") === "1";
    this.at = Number(params.get("step") ?? 0);
    this.goTo = null;
    this.board = new BoardView();
    this.board.flip(this.flipped);
    fill(this.stage, this.board.element);
    root.append(h("h1", { class: "visually-hidden" }, "Data"), this.stage, this.panel);
    get<{ data: DataText[]; folders: string[] }>("data").then(({ data, folders }) => {
      this.sets = data;
      if (!data.length) {
        fill(root, emptyState("No data sets found", h("span", {}, "Looked in ", folders.join(", ") || "no folder", ". Make one with ",
          h("code", {}, "kibitz policy precompute"), " and serve its folder: ", h("code", {}, "kibitz serve --data DIR"))));
        return;
      }
      this.set = data.find((each) => each.id === params.get("set")) ?? data[0]!;
      this.build();
      void this.load();
    }, fail);
  }

  key(key: string): boolean {
    const inGame = this.set?.kind === "2048" && this.goTo;
    switch (key) {
      case "ArrowRight": if (inGame) this.goTo!(1); else this.step(1); return true;
      case "ArrowLeft": if (inGame) this.goTo!(-1); else this.step(-1); return true;
      case "ArrowDown": if (!inGame) return false; this.step(1); return true;
      case "ArrowUp": if (!inGame) return false; this.step(-1); return true;
      case "r": this.random(); return true;
      case "f": this.flipped = !this.flipped; this.board.flip(this.flipped); this.save(); return true;
      case "/": document.getElementById("index")?.focus(); return true;
      default: return false;
    }
  }

  private save() {
    remember({ set: this.set?.id, index: this.index, split: this.split === "train" ? null : this.split,
      temperature: this.temperature === 50 ? null : this.temperature, strategy: this.strategy === "deepest" ? null : this.strategy,
      depth: this.minDepth || null, flip: this.flipped ? 1 : null, step: this.set?.kind === "2048" ? this.at || null : null });
  }

  private build() {
    const choose = h("select", { id: "set", onchange: () => { this.set = this.sets.find((each) => each.id === choose.value)!; this.index = 0; this.at = 0; this.size = 0; this.sample = null; this.goTo = null; this.build(); void this.load(); } },
      ...this.sets.map((each) => h("option", { value: each.id, selected: each === this.set }, `${each.id} (${each.kind})`)));
    const index = h("input", { type: "number", id: "index", min: 0, value: this.index,
      onchange: () => { this.index = Math.max(0, Number(index.value)); void this.load(); } });
    const policy = this.set?.kind === "policy";
    const split = h("select", { id: "split", onchange: () => { this.split = split.value; this.index = 0; void this.load(); } },
      ...["train", "val", "test"].map((each) => h("option", { selected: each === this.split }, each)));
    const depth = h("input", { type: "number", id: "depth", min: 0, max: 200, value: this.minDepth,
      onchange: () => { this.minDepth = Number(depth.value); void this.load(); } });
    fill(this.panel,
      h("div", { class: "data-tools" }, h("label", { for: "set" }, "data set", choose),
        h("label", { for: "index" }, this.set?.kind === "2048" ? "game" : "number", index),
        policy ? h("label", { for: "split" }, "split", split) : null,
        policy ? h("label", { for: "depth", title: "only positions analysed this deep" }, "depth from", depth) : null,
        h("span", { class: "segments" },
          h("button", { "aria-label": "the one before (←)", onclick: () => this.step(-1) }, "◀"),
          h("button", { "aria-label": "the next (→)", onclick: () => this.step(1) }, "▶"),
          h("button", { title: "a random one (r)", onclick: () => this.random() }, "Random"))),
      this.body);
  }

  private step(by: number) {
    const size = this.sample?.sizes?.[this.split] ?? this.size;
    this.index = Math.max(0, size ? Math.min(size - 1, this.index + by) : this.index + by);
    this.at = 0;
    void this.load(by < 0);
  }
  private random() {
    const size = this.sample?.sizes?.[this.split] ?? this.size;
    if (size) this.index = Math.floor(Math.random() * size);
    void this.load();
  }
  private size = 0;
  private at = 0;                                        // The step of a 2048 game.
  private goTo: ((by: number) => void) | null = null;    // Steps through it.

  private async load(back = false) {
    if (!this.set) return;
    const asked = ++this.asked;
    try {
      if (this.set.kind === "policy") await this.loadPosition(asked, back);
      else if (this.set.kind === "2048") await this.loadGame(asked);
      else await this.loadSequence(asked);
    } catch (error) { if (asked === this.asked) fail(error); }
  }

  private landed(index: number) {
    this.index = index;
    const field = document.getElementById("index") as HTMLInputElement | null;
    if (field) field.value = String(index);
    this.save();
  }

  // --- Policy ---

  private async loadPosition(asked: number, back: boolean) {
    const query = new URLSearchParams({ split: this.split, index: String(this.index), temperature: String(this.temperature),
      strategy: this.strategy, min_depth: String(this.minDepth), back: back ? "1" : "0" });
    const sample = await get<Sample>(`data/${pathOf(this.set!.id)}/position?${query}`);
    if (asked !== this.asked) return;
    this.sample = sample;
    if (sample.empty) { fill(this.body, emptyState(`The split ${this.split} is empty`, "Choose another split.")); return; }
    this.landed(sample.index);
    fill(this.stage, this.board.element);
    this.showLabel();
  }

  private showBoard(hover?: string) {
    const sample = this.sample!;
    const most = sample.label[0]?.probability ?? 1;
    const arrows = hover ? [{ uci: hover, kind: "hover" as const }]
      : sample.label.filter((each) => each.probability >= 0.02).slice(0, 8).reverse()
        .map((each) => ({ uci: each.uci, kind: "share" as const, weight: each.probability / most }));
    this.board.show({ placement: sample.fen.split(" ")[0]!, turn: sample.fen.split(" ")[1] === "w" ? "white" : "black", arrows });
  }

  private showLabel() {
    const sample = this.sample!;
    this.showBoard();
    const bars = this.bars();
    const value = h("output", { class: "number" }, `${this.temperature} cp`);
    // Steps of equal ratio: from 1 to 1000 centipawns.
    const slider = h("input", { type: "range", id: "temperature", min: 0, max: 3, step: 0.02, value: Math.log10(this.temperature),
      "aria-label": "temperature in centipawns",
      oninput: () => { this.temperature = Number((10 ** Number(slider.value)).toPrecision(2)); value.textContent = `${this.temperature} cp`; void this.relabel(bars); } });
    const strategy = h("select", { id: "strategy", onchange: () => { this.strategy = strategy.value; void this.load(); } },
      ...["deepest", "nodes", "best", "all"].map((each) => h("option", { selected: each === this.strategy }, each)));
    fill(this.body,
      h("p", { class: "small" }, `${count(sample.sizes[this.split] ?? 0)} positions in ${this.split} · analysed to depth ${sample.max_depth} · `,
        h("a", { href: `/think?fen=${encodeURIComponent(sample.fen)}` }, "open in Think")),
      h("div", { class: "slider" }, h("label", { for: "temperature" }, "temperature"), slider, value),
      h("label", { class: "small", for: "strategy" }, "analyses that count ", strategy), bars,
      h("section", { "aria-label": "analyses" }, h("h2", {}, "Analyses"), ...sample.sessions.map((session) =>
        h("div", { class: "session" }, h("h3", {}, `depth ${session.depth} · ${count(session.knodes * 1000)} nodes`),
          h("ul", {}, ...session.lines.map((line) => h("li", {}, h("strong", {}, line.san ?? line.uci), " ",
            h("span", { class: "number" }, score(line)))))))));
  }

  private bars(): HTMLElement {
    const list = h("ul", { class: "bars", "aria-label": "soft label" });
    this.fillBars(list);
    return list;
  }

  private fillBars(list: HTMLElement) {
    fill(list, ...this.sample!.label.slice(0, 12).map((each) => h("li",
      { onmouseenter: () => this.showBoard(each.uci), onmouseleave: () => this.showBoard() },
      h("button", { onfocus: () => this.showBoard(each.uci), onblur: () => this.showBoard() }, each.san ?? each.uci),
      h("span", { class: "track" }, h("i", { style: { width: percent(each.probability) } })),
      h("span", { class: "number" }, `${(100 * each.probability).toFixed(1)}%`))));
  }

  // The label at another temperature, while the slider moves; an answer that comes late is dropped.
  private async relabel(bars: HTMLElement) {
    const asked = ++this.asked;
    const query = new URLSearchParams({ split: this.split, index: String(this.index), temperature: String(this.temperature), strategy: this.strategy });
    const sample = await get<Sample>(`data/${pathOf(this.set!.id)}/position?${query}`).catch(() => null);
    if (!sample || asked !== this.asked) return;
    this.sample = sample;
    this.fillBars(bars);
    this.showBoard();
    this.save();
  }

  // --- Decoder ---

  private async loadSequence(asked: number) {
    const answer = await get<{ row: number; rows: number; tokens: TokenText[] }>(`data/${pathOf(this.set!.id)}/sequence?row=${this.index}`);
    if (asked !== this.asked) return;
    this.sample = null;
    this.size = answer.rows;
    this.landed(answer.row);
    fill(this.stage, this.board.element);
    const boards = boardsOf(answer.tokens);
    const show = (block: number, caption: string) => {
      const letters = boards.get(block);
      if (letters) this.board.show({ placement: placementOf(letters), caption }, false);
    };
    show([...boards.keys()][0] ?? 0, "the root");
    const rows: HTMLElement[] = [];
    for (let i = 0; i < answer.tokens.length; i++) {
      const at = answer.tokens[i]!;
      const block = at.block;
      if (block !== undefined) {
        while (answer.tokens[i + 1]?.block === block) i++;
        rows.push(h("button", { onmouseenter: () => show(block, `board ${block}`), onfocus: () => show(block, `board ${block}`) },
          h("span", { class: "number" }, String(i)), h("strong", {}, `board ${block}`), h("span", { class: "small" }, "68 tokens")));
      } else {
        const value = at.wl !== undefined ? at.wl.toFixed(3) : at.d !== undefined ? at.d.toFixed(3) : "";
        const target = [at.move && `move ${at.move}`, at.target && `next ${at.target}${at.overridden ? " (signal)" : ""}`].filter(Boolean).join(" · ");
        rows.push(h("button", { title: at.masks.join(" ") }, h("span", { class: "number" }, String(i)), h("code", {}, at.token), h("span", { class: "small" }, value || target)));
      }
    }
    fill(this.body, h("p", { class: "small" }, `${count(answer.rows)} rows · ${answer.tokens.length} tokens`), h("div", { class: "sequence" }, ...rows));
  }

  // --- 2048 ---

  private async loadGame(asked: number) {
    const answer = await get<PackGame>(`data/${pathOf(this.set!.id)}/steps?game=${this.index}`);
    if (asked !== this.asked) return;
    this.sample = null;
    this.size = answer.games;
    const last = Math.max(0, answer.steps.length - 1);
    this.at = Math.max(0, Math.min(this.at, last));
    this.landed(answer.game);
    const tiles = new Tiles();
    fill(this.stage, h("div", { class: "pack-board" }, tiles.element));
    const text = h("p", { class: "number", "aria-live": "polite" });
    const values = h("ul", { class: "bars", "aria-label": "values of the four moves" });
    const curve = scoreCurve(answer.steps);
    const show = (at: number) => {
      const step = answer.steps[at];
      if (!step) return;
      this.at = at;
      slider.value = String(at);
      tiles.show(step.board);
      tiles.wish(step.values, step.move, true);
      text.textContent = `step ${step.step} of ${answer.steps.at(-1)!.step}: ${step.move} · ${count(step.score)} points before it`;
      curve.mark(at);
      const known = Object.values(step.values).filter((each): each is number => each !== null);
      const most = Math.max(...known), least = Math.min(...known);
      fill(values, ...Object.entries(step.values).filter(([, value]) => value !== null).sort((a, b) => b[1]! - a[1]!).map(([move, value]) =>
        h("li", { class: move === step.move ? "played" : "" }, h("strong", {}, move),
          h("span", { class: "track" }, h("i", { style: { width: percent(most > least ? 0.1 + 0.9 * (value! - least) / (most - least) : 1) } })),
          h("span", { class: "number" }, String(Number(value!.toPrecision(3)))))));
      this.save();
    };
    const slider = h("input", { type: "range", id: "step", min: 0, max: last, value: 0, "aria-label": "step", oninput: () => show(Number(slider.value)) });
    curve.element.addEventListener("click", (event) => {
      const box = curve.element.getBoundingClientRect();
      show(Math.round((event.clientX - box.left) / box.width * last));
    });
    this.goTo = (by) => show(Math.max(0, Math.min(last, this.at + by)));
    show(this.at);
    fill(this.body, h("p", { class: "small" }, `${count(answer.games)} games · score ${count(answer.score)} · largest tile ${answer.highest_tile}`),
      h("figure", { class: "score-curve" }, h("figcaption", { class: "small" }, "points by step; a click goes there"), curve.element), slider, text, values);
  }
}

interface PackStep { board: number[]; step: number; score: number; move: string; values: Record<string, number | null> }
interface PackGame { games: number; game: number; score: number; highest_tile: number; steps: PackStep[] }

// The score of a 2048 game as it grew, with a mark at the step shown.
function scoreCurve(steps: PackStep[]): { element: SVGElement; mark: (at: number) => void } {
  const last = Math.max(1, steps.length - 1), most = Math.max(1, steps.at(-1)?.score ?? 1);
  const mark = svg("line", { y1: 0, y2: 30, class: "graph-now" });
  const element = svg("svg", { class: "graph", viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img",
    "aria-label": `score by step, up to ${most}` },
  svg("polyline", { class: "graph-line", points: steps.map((step, i) => `${(100 * i / last).toFixed(2)},${(29 - 28 * step.score / most).toFixed(2)}`).join(" ") }), mark);
  return { element, mark: (at) => { for (const side of ["x1", "x2"]) mark.setAttribute(side, String(100 * at / last)); } };
}

function boardsOf(tokens: TokenText[]): Map<number, string> {
  const letters: Record<string, string> = { empty: "." };
  for (const [name, letter] of [["king", "k"], ["queen", "q"], ["rook", "r"], ["bishop", "b"], ["knight", "n"], ["pawn", "p"]] as const) {
    letters[`white_${name}`] = letter.toUpperCase();
    letters[`black_${name}`] = letter;
  }
  const boards = new Map<number, string>();
  for (const at of tokens) {
    if (at.block === undefined || !(at.token in letters)) continue;
    boards.set(at.block, (boards.get(at.block) ?? "") + letters[at.token]);
  }
  return boards;
}

function score(line: { cp?: number; mate?: number }): string {
  if (line.mate !== undefined) return `mate in ${Math.abs(line.mate)} for ${line.mate > 0 ? "White" : "Black"}`;
  return `${(line.cp ?? 0) >= 0 ? "+" : ""}${((line.cp ?? 0) / 100).toFixed(2)}`;
}

export const page: Page = new DataPage();
