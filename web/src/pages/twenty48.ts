// 2048: watch a model or the oracle, play with its advice, or compare two on one seed.
import { get, post, type Model } from "../api";
import { fill, h } from "../dom";
import { announce, fail, remember, type Page } from "../shell";
import { Tiles } from "../tiles";

interface State {
  board: number[]; score: number; moves: number; seed: number; max_tile: number; legal: string[]; over: boolean;
  slid?: number[]; move?: string;
  preference?: { scores: Record<string, number | null>; values: boolean; best: string | null };
}

const swipe = 24;  // Pixels; less is a tap.
const arrows: Record<string, string> = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };

// One game: a board and who advises or plays.
class Seat {
  state: State | null = null;
  player = "";
  readonly tiles = new Tiles();
  private readonly score = h("b", {}, "0");
  private readonly note = h("span", { class: "small" });
  readonly select = h("select", { "aria-label": "who plays or advises", onchange: () => { this.player = this.select.value; this.changed(); void this.ask(); } });
  readonly element = h("section", { class: "game2048" },
    h("header", {}, this.select, h("span", { class: "score" }, this.score)), this.tiles.element, this.note);

  constructor(private readonly changed: () => void, swiped: (move: string) => void) {
    const field = this.tiles.element;
    let begun: PointerEvent | null = null;
    field.addEventListener("pointerdown", (event) => { begun = event; });
    field.addEventListener("pointerup", (event) => {
      const dx = event.clientX - (begun?.clientX ?? event.clientX), dy = event.clientY - (begun?.clientY ?? event.clientY);
      begun = null;
      if (Math.max(Math.abs(dx), Math.abs(dy)) < swipe) return;
      swiped(Math.abs(dx) > Math.abs(dy) ? (dx > 0 ? "right" : "left") : dy > 0 ? "down" : "up");
    });
    field.addEventListener("pointercancel", () => { begun = null; });
  }

  async start(seed: number) {
    this.state = await post<State>("2048/prefer", { seed, player: this.player });
    this.show();
  }
  async ask() {
    if (!this.state) return;
    this.take(await post<State>("2048/prefer", { ...this.game(), player: this.player }));
  }
  // One after another: a key pressed meanwhile waits.
  step(move?: string): Promise<void> { return (this.queue = this.queue.catch(() => {}).then(() => this.stepNow(move))); }
  private queue: Promise<void> = Promise.resolve();
  private async stepNow(move?: string) {
    if (!this.state || this.state.over || (move && !this.state.legal.includes(move))) return;
    this.take(await post<State>("2048/step", { ...this.game(), player: this.player, move }));
  }
  private game() {
    const { board, score, moves, seed } = this.state!;
    return { board, score, moves, seed };
  }
  private take(state: State) { this.state = state; this.show(); }
  private show() {
    const state = this.state!;
    this.tiles.show(state.board, state.move, state.slid);
    this.tiles.wish(state.preference?.scores ?? null, state.preference?.best ?? null, state.preference?.values);
    this.score.textContent = state.score.toLocaleString("en");
    this.note.textContent = `${state.moves} moves · largest tile ${state.max_tile}${state.over ? " · game over" : ""}`;
    if (state.over) announce(`game over, score ${state.score}`);
  }
}

class Page2048 implements Page {
  readonly keys: [string, string][] = [["← ↑ → ↓", "move"], ["space", "let it play, pause"], ["s", "one move of the player"], ["n", "new game"], ["r", "another seed"]];
  private seats: Seat[] = [];
  private seed = 1;
  private running = false;
  private left = false;
  private games = h("div", { class: "games" });
  private play = h("button", { class: "primary", onclick: () => this.toggle() }, "Play");
  private speed = h("input", { type: "range", min: 0, max: 400, step: 20, value: 120, id: "pause", "aria-label": "milliseconds between moves" });
  private seedField = h("input", { type: "number", id: "seed", min: 0, value: 1, onchange: () => { this.seed = Number(this.seedField.value); void this.restart(); } });
  private players: { id: string; name: string }[] = [];

  mount(root: HTMLElement, params: URLSearchParams) {
    this.left = false;
    this.running = false;
    this.seed = Number(params.get("seed") ?? 1);
    this.seedField.value = String(this.seed);
    const compare = h("input", { type: "checkbox", id: "compare", checked: params.has("other"), onchange: () => void this.setSeats(compare.checked ? 2 : 1) });
    fill(this.games);
    root.append(h("h1", { class: "visually-hidden" }, "2048"),
      h("div", { class: "data-tools" }, this.play, h("button", { title: "one move (s)", onclick: () => void this.step() }, "Step"),
        h("button", { title: "new game (n)", onclick: () => void this.restart() }, "New game"),
        h("label", { for: "seed" }, "seed", this.seedField), h("label", { for: "pause" }, "pause", this.speed),
        h("label", { for: "compare" }, compare, "compare two on one seed")),
      this.games, h("p", { class: "small note2048" }, "Move with the arrow keys, or swipe. The bars on the edges are what the player would do."));
    get<{ models: Model[] }>("models").then(({ models }) => {
      this.players = [...models.filter((model) => model.kind === "2048").map((model) => ({ id: model.id, name: model.id })),
        { id: "oracle:heuristic", name: "expectimax, row heuristic" }, { id: "oracle:snake", name: "expectimax, snake heuristic" }];
      this.seats = [];
      void this.setSeats(params.has("other") ? 2 : 1, [params.get("player"), params.get("other")]);
    }, fail);
    return () => { this.left = true; this.running = false; };
  }

  private async setSeats(wanted: number, names: (string | null)[] = []) {
    while (this.seats.length > wanted) this.seats.pop();
    while (this.seats.length < wanted) {
      const seat = new Seat(() => this.save(), (move) => this.move(move));
      fill(seat.select, ...this.players.map((each) => h("option", { value: each.id }, each.name)));
      const place = this.seats.length;
      seat.player = names[place] && this.players.some((each) => each.id === names[place]) ? names[place]!
        : this.players[Math.min(place, this.players.length - 1)]!.id;
      seat.select.value = seat.player;
      this.seats.push(seat);
    }
    fill(this.games, ...this.seats.map((seat) => seat.element));
    await this.restart();
  }

  private save() {
    remember({ player: this.seats[0]?.player, other: this.seats[1]?.player, seed: this.seed === 1 ? null : this.seed });
  }

  key(key: string): boolean {
    if (arrows[key]) { this.move(arrows[key]!); return true; }
    switch (key) {
      case " ": this.toggle(); return true;
      case "s": void this.step(); return true;
      case "n": void this.restart(); return true;
      case "r": this.seed = Math.floor(Math.random() * 1e6); this.seedField.value = String(this.seed); void this.restart(); return true;
      default: return false;
    }
  }

  private move(move: string) {
    this.running = false;
    this.showRunning();
    void Promise.all(this.seats.map((seat) => seat.step(move))).catch(fail);
  }

  private async restart() {
    this.running = false;
    this.showRunning();
    this.save();
    await Promise.all(this.seats.map((seat) => seat.start(this.seed))).catch(fail);
  }
  private async step() { await Promise.all(this.seats.map((seat) => seat.step())).catch(fail); }
  private toggle() { this.running = !this.running; this.showRunning(); if (this.running) void this.run(); }
  private showRunning() { this.play.textContent = this.running ? "Pause" : "Play"; this.play.classList.toggle("stop", this.running); }
  private async run() {
    while (this.running && !this.left && this.seats.some((seat) => seat.state && !seat.state.over)) {
      await this.step();
      await new Promise((done) => setTimeout(done, Number(this.speed.value)));
    }
    this.running = false;
    this.showRunning();
  }
}

export const page: Page = new Page2048();
