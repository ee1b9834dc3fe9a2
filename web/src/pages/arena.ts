// Arena: two players against each other, one game to watch, or a series in the background.
import { follow, get, remove, stream, type Candidate, type PlayerText, type ServerEvent, type Wdl } from "../api";
import { BoardView } from "../board";
import { fill, h, percent, svg } from "../dom";
import { Game } from "../game";
import { allOpenings, chooseOpening, openingName, type Opening } from "../openings";
import { PlayerChooser } from "../players";
import { announce, fail, remember, title, type Page } from "../shell";
import { setWdl, wdlBar } from "../wdl";

interface Counts { wins: number; draws: number; losses: number }
interface Summary extends Counts {
  id?: string; players: [string, string]; wanted: number; games: number; elo: number | null; elo_error: number | null; los: number | null;
  as_white: Counts; as_black: Counts; openings: (Counts & { name: string })[]; ends: Record<string, number>;
}
interface JobText { id: string; kind: string; state: string }
interface Ply { moves: Candidate[]; wdl?: Wdl; note: string }

const speeds: [string, number][] = [["slow", 1500], ["normal", 500], ["fastest", 0]];
const short = (name: string) => decodeURIComponent(name.replace(/^(decoder|policy|lc0|engine):/, "")).replace("?", ", ").replaceAll("&", ", ");

class ArenaPage implements Page {
  readonly keys: [string, string][] = [["space", "play, pause"], ["s", "one move"], ["← →", "step through the game"], ["n", "new game"], ["o", "openings"], ["f", "flip the board"]];
  private game = new Game(() => this.changed());
  private board!: BoardView;
  private flipped = false;
  private temperatures: [string, string] = ["", ""];   // "": the player's own.
  private opening = "";
  private openings: Opening[] = [];
  private plies: Ply[] = [];                            // What was told before each move, by ply.
  private speed = 500;
  private running = false;
  private asking: AbortController | null = null;
  private watching: AbortController | null = null;
  private series: string | null = null;                 // The job of the series that runs.

  private play = h("button", { class: "primary", onclick: () => this.toggle() }, "Play");
  private status = h("p", { class: "status", role: "status" });
  private moves = h("ol", { class: "moves", "aria-label": "moves of the game" });
  private wdl = wdlBar(undefined, "wide");
  private wdlText = h("span", { class: "wdl-text" });
  private graph = svg("svg", { class: "graph", viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": "evaluation by move, White's view" });
  private top = h("ul", { class: "bars", "aria-label": "most likely moves" });
  private table = h("div", { class: "series" });
  private earlier = h("div", { class: "earlier" });
  private choosers = [0, 1].map((i) => new PlayerChooser(`player${i}`, () => this.save()));  // White, Black.
  private openingField = h("input", { id: "opening", list: "openings", placeholder: "ECO code or name, or a FEN", autocomplete: "off",
    onchange: () => { this.opening = this.openingField.value; void this.restart(); } });

  mount(root: HTMLElement, params: URLSearchParams) {
    this.game = new Game(() => this.changed());
    this.temperatures = [params.get("white_temperature") ?? "", params.get("black_temperature") ?? ""];
    this.opening = params.get("opening") ?? "";
    this.openingField.value = this.opening;
    this.running = false;
    this.plies = [];
    this.series = null;
    fill(this.table);
    this.build(root);
    void this.begin(params);
    return () => { this.running = false; this.asking?.abort(); this.watching?.abort(); };
  }

  private async begin(params: URLSearchParams) {
    try {
      const [{ players }, openings] = await Promise.all([get<{ players: PlayerText[] }>("players"), allOpenings()]);
      this.openings = openings;
      fill(document.getElementById("openings")!, ...openings.map((each) => h("option", { value: openingName(each) })));
      const liked = players.filter((each) => each.kind === "policy" || each.kind === "negamax");
      this.choosers.forEach((chooser, i) =>
        chooser.fill(players, params.get(i ? "black" : "white") ?? "", (liked[i] ?? players[Math.min(i, players.length - 1)]!).name));
      const moves = (params.get("moves") ?? "").split(",").filter(Boolean);
      if (moves.length || params.get("fen")) await this.game.load(params.get("fen"), moves);
      else await this.restart();
      await this.listEarlier();
      await this.reattach();
    } catch (error) { fail(error); }
  }

  // --- The page's parts ---

  private build(root: HTMLElement) {
    this.board = new BoardView();
    this.board.flip(this.flipped);
    this.graph.addEventListener("click", (event) => {
      const box = this.graph.getBoundingClientRect();
      void this.game.go(Math.round((event.clientX - box.left) / box.width * this.game.moves.length));
    });
    const speed = h("select", { id: "speed", onchange: () => { this.speed = Number(speed.value); } },
      ...speeds.map(([name, value]) => h("option", { value, selected: value === this.speed }, name)));
    root.append(h("h1", { class: "visually-hidden" }, "Arena"),
      h("section", { class: "stage", "aria-label": "board" }, this.board.element,
        h("div", { class: "under" }, h("div", { class: "evaluation" }, this.wdl, this.wdlText), this.graph, this.moves)),
      h("section", { class: "panel", "aria-label": "players" },
        h("div", { class: "contenders" }, this.card(0, "White"), this.card(1, "Black")),
        h("div", { class: "opening-row" }, h("label", { for: "opening" }, "Opening"), this.openingField,
          h("button", { title: "choose an opening (o)", onclick: () => void this.openOpening() }, "Choose"), h("datalist", { id: "openings" })),
        h("div", { class: "ask-row" }, this.play,
          h("button", { title: "one move (s)", onclick: () => void this.step() }, "Step"),
          h("button", { title: "new game (n)", onclick: () => void this.restart() }, "New game"),
          h("label", { for: "speed", class: "small" }, "speed ", speed)),
        this.status, this.top, this.buildSeries(), this.table, this.earlier));
  }

  private card(i: 0 | 1, color: string): HTMLElement {
    const temperature = h("input", { type: "number", id: `temperature${i}`, min: 0, max: 10, step: 0.1, placeholder: "own", value: this.temperatures[i],
      onchange: () => { this.temperatures[i] = temperature.value; this.save(); } });
    return h("article", { class: `card contender side-${i}` }, h("h2", {}, h("i", { class: `disc disc-${i}`, "aria-hidden": "true" }), color),
      h("label", { for: `player${i}`, class: "visually-hidden" }, `${color}'s player`), this.choosers[i]!.select,
      h("div", { class: "contender-options" }, h("label", { for: `temperature${i}`, class: "small" }, "temperature ", temperature), this.choosers[i]!.options));
  }

  private buildSeries(): HTMLElement {
    const pairs = h("input", { type: "number", id: "pairs", min: 1, max: 500, value: 2 });
    const source = h("select", { id: "source" }, h("option", { value: "book" }, "balanced book"), h("option", { value: "named" }, "named openings"), h("option", { value: "start" }, "usual start"));
    return h("section", { class: "card", "aria-label": "series" }, h("h2", {}, "Series"),
      h("p", { class: "small" }, "Each opening twice, colours swapped. It goes on in the background when you leave."),
      h("div", { class: "ask-row" }, h("label", { for: "pairs", class: "small" }, "pairs ", pairs), h("label", { for: "source", class: "small" }, "openings ", source),
        h("button", { id: "start-series", onclick: () => void this.startSeries(Number(pairs.value), source.value) }, "Start series")));
  }

  private save() {
    title(`${this.choosers.map((each) => each.entry?.title ?? "?").join(" – ")} · Arena`);
    remember({ white: this.choosers[0]!.value, black: this.choosers[1]!.value, white_temperature: this.temperatures[0], black_temperature: this.temperatures[1],
      opening: this.opening, fen: this.game.start === null ? null : this.game.start, moves: this.game.moves.join(",") });
  }

  // --- One game ---

  key(key: string): boolean {
    switch (key) {
      case " ": this.toggle(); return true;
      case "s": void this.step(); return true;
      case "ArrowLeft": void this.game.go(this.game.ply - 1); return true;
      case "ArrowRight": void this.game.go(this.game.ply + 1); return true;
      case "n": void this.restart(); return true;
      case "o": void this.openOpening(); return true;
      case "f": this.flipped = !this.flipped; this.board.flip(this.flipped); return true;
      default: return false;
    }
  }

  private async openOpening() {
    const opening = await chooseOpening().catch(fail);
    if (!opening) return;
    this.opening = this.openingField.value = openingName(opening);
    await this.restart();
  }

  private async restart() {
    this.pause();
    this.asking?.abort();
    this.plies = [];
    const known = this.openings.find((each) => openingName(each) === this.opening);
    try {
      if (known) await this.game.load(null, known.moves.split(" "));
      else if (this.opening.includes("/")) await this.game.load(this.opening, []);
      else await this.game.load(null, []);
    } catch (error) { fail(error); }
  }

  private toggle() { if (this.running) this.pause(); else void this.run(); }
  private pause() { this.running = false; this.showRunning(); }
  private showRunning() { this.play.textContent = this.running ? "Pause" : "Play"; this.play.classList.toggle("stop", this.running); }

  private async run() {
    this.running = true;
    this.showRunning();
    await this.game.go(this.game.moves.length);
    while (this.running && !this.game.now?.ending) {
      const begun = performance.now();
      if (!(await this.step())) break;
      await new Promise((done) => setTimeout(done, Math.max(0, this.speed - (performance.now() - begun))));
    }
    this.pause();
  }

  private nameOf(side: 0 | 1): string {
    const name = this.choosers[side]!.value, temperature = this.temperatures[side];
    if (temperature === "") return name;
    return `${name}${name.includes("?") ? "&" : "?"}temperature=${temperature}`;
  }

  // Asks the player to move, shows what it told, and plays. False when there is no move.
  private async step(): Promise<boolean> {
    const now = this.game.now;
    if (!now || now.ending || this.asking) return false;
    const side = now.turn === "white" ? 0 : 1;
    const controller = this.asking = new AbortController();
    const ply = this.game.ply;
    this.status.textContent = `${now.turn} thinks`;
    try {
      for await (const { event, data } of stream("move", { player: this.nameOf(side), seed: ply, ...this.game.body }, controller.signal)) {
        if (event === "error") throw new Error(data.message);
        if (event !== "answer" || !data.move) continue;
        this.plies.length = Math.max(this.plies.length, ply);
        this.plies[ply] = { moves: data.moves.filter((each: Candidate) => each.probability > 0), wdl: data.lines[0]?.wdl ?? data.wdl, note: `${data.player}: ${data.move.san}` };
        this.asking = null;
        await this.game.play(data.move.uci);
        announce(data.move.san);
        return true;
      }
    } catch (error) { if (!controller.signal.aborted) { fail(error); this.pause(); } }
    finally { if (this.asking === controller) this.asking = null; this.status.textContent = this.endText(); }
    return false;
  }

  private endText(): string {
    const line = this.game.line;
    return line?.ending ? `${line.result}, ${line.ending}` : "";
  }

  private changed() {
    const now = this.game.now!;
    this.save();
    // Behind a move: what its player saw before it.
    const told = this.plies[this.game.ply - 1];
    const last = this.game.ply ? this.game.moves[this.game.ply - 1] : null;
    const most = told?.moves[0]?.probability ?? 1;
    this.board.show({ placement: now.fen.split(" ")[0]!, turn: now.turn, check: now.check, last,
      arrows: (told?.moves ?? []).filter((each) => each.probability >= 0.2).reverse().map((each) => ({ uci: each.uci, kind: "share", weight: each.probability / most })) });
    this.status.textContent = this.endText();
    fill(this.top, ...(told?.moves ?? []).slice(0, 10).map((each) => h("li", { class: each.uci === last ? "played" : "" }, h("strong", {}, each.san ?? each.uci),
      h("span", { class: "track" }, h("i", { style: { width: percent(each.probability) } })), h("span", { class: "number" }, `${(100 * each.probability).toFixed(1)}%`))));
    this.showMoves();
    this.showGraph();
    setWdl(this.wdl, told?.wdl);
    this.wdlText.textContent = told?.wdl ? `White ${percent(told.wdl.win)} · draw ${percent(told.wdl.draw)} · Black ${percent(told.wdl.loss)}` : "";
  }

  private showMoves() {
    const line = this.game.line!;
    const black = line.start.split(" ")[1] === "b" ? 1 : 0;
    const rows: HTMLElement[] = [];
    line.moves.forEach((move, i) => {
      if ((i + black) % 2 === 0 || i === 0) rows.push(h("li", {}, h("span", { class: "number" }, `${Math.floor((i + black) / 2) + 1}.`)));
      rows.at(-1)!.append(h("button", { class: "move", "aria-current": this.game.ply === i + 1 ? "step" : null, onclick: () => void this.game.go(i + 1) }, move.san));
    });
    fill(this.moves, ...(rows.length ? rows : [h("li", { class: "hint" }, "Press space: the two play.")]));
    const shown = this.moves.querySelector<HTMLElement>("[aria-current]");
    if (shown) this.moves.scrollTop = shown.offsetTop - this.moves.offsetTop - 32;
  }

  // White's expected score, ply by ply; a click goes there.
  private showGraph() {
    const size = Math.max(1, this.game.moves.length);
    const points = this.plies.map((ply, i) => ply?.wdl && `${((i + 1) / size * 100).toFixed(2)},${(30 - 30 * (ply.wdl.win + ply.wdl.draw / 2)).toFixed(2)}`).filter(Boolean);
    const x = this.game.ply / size * 100;
    fill(this.graph, svg("line", { x1: 0, y1: 15, x2: 100, y2: 15, class: "graph-middle" }),
      points.length > 1 ? svg("polyline", { points: points.join(" "), class: "graph-line" }) : null,
      svg("line", { x1: x, y1: 0, x2: x, y2: 30, class: "graph-now" }));
  }

  // --- Series ---

  private async startSeries(pairs: number, openings: string) {
    const body = { first: this.choosers[0]!.value, second: this.choosers[1]!.value, pairs, openings,
      white_temperature: this.temperatures[0] === "" ? null : Number(this.temperatures[0]),
      black_temperature: this.temperatures[1] === "" ? null : Number(this.temperatures[1]) };
    await this.watch((signal) => stream("series", body, signal));
  }

  // A series that was started before: this page was left, or loaded again.
  private async reattach() {
    const { jobs } = await get<{ jobs: JobText[] }>("jobs");
    const job = jobs.filter((each) => each.kind === "series" && ["waiting", "running"].includes(each.state)).at(-1);
    if (job && !this.series) void this.watch((signal) => follow(job.id, signal));
  }

  private async watch(events: (signal: AbortSignal) => AsyncGenerator<ServerEvent>) {
    this.watching?.abort();
    const controller = this.watching = new AbortController();
    let id = "", state = "";
    let last: Summary | null = null;
    try {
      for await (const { event, data } of events(controller.signal)) {
        if (event === "job") { this.series = data.id; this.showBegun(data.ahead ? "waits for other work" : "the first game is being played"); }
        if (event === "start") { id = data.id; this.showBegun(`${short(data.players[0])} – ${short(data.players[1])}: the first game is being played`); }
        if (event === "game") { last = { ...data.summary, id }; this.showSeries(last!, false); }
        if (event === "end") state = data.state;
        if (event === "error") throw new Error(data.message);
      }
      if (controller.signal.aborted) return;
      this.series = null;
      if (last) this.showSeries(last, true);
      else fill(this.table, h("p", { class: "status" }, state === "stopped" ? "stopped before the first game ended" : "no game was played"));
      await this.listEarlier();
    } catch (error) {
      if (controller.signal.aborted) return;
      this.series = null;
      fill(this.table);
      fail(error);
    }
  }

  private showBegun(text: string) {
    fill(this.table, h("section", { class: "card", "aria-label": "result" }, h("p", { class: "status" }, text), this.stopButton()));
  }

  private stopButton(): HTMLElement {
    return h("button", { id: "stop-series", title: "the game under way is not counted", onclick: () => { if (this.series) void remove(`jobs/${this.series}`); } }, "Stop");
  }

  private showSeries(summary: Summary, done: boolean) {
    const row = (name: string, counts: Counts) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, String(counts.wins)), h("td", {}, String(counts.draws)), h("td", {}, String(counts.losses)));
    fill(this.table, h("section", { class: "card", "aria-label": "result" },
      h("h2", {}, `${summary.games} of ${summary.wanted} games`),
      done ? null : h("progress", { max: summary.wanted, value: summary.games, "aria-label": "games played" }),
      h("p", { class: "elo" }, eloText(summary)), eloBar(summary),
      h("table", {}, h("caption", { class: "small" }, `${short(summary.players[0])} against ${short(summary.players[1])}`),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, short(summary.players[0])), ...["won", "drawn", "lost"].map((each) => h("th", { scope: "col" }, each)))),
        h("tbody", {}, row("all", summary), row("as White", summary.as_white), row("as Black", summary.as_black), ...summary.openings.map((each) => row(each.name, each)))),
      h("div", { class: "ask-row" }, summary.id ? h("a", { class: "button", href: `/api/v1/series/${summary.id}/pgn`, download: `${summary.id}.pgn` }, "PGN") : null,
        !done && this.series ? this.stopButton() : null)));
  }

  private async listEarlier() {
    const { series } = await get<{ series: Summary[] }>("series");
    if (!series.length) { fill(this.earlier); return; }
    fill(this.earlier, h("h2", {}, "Series played"), h("ul", { class: "series-list" }, ...series.slice(0, 20).map((each) =>
      h("li", {}, h("button", { onclick: () => this.showSeries(each, true) }, `${short(each.players[0])} – ${short(each.players[1])}`),
        h("span", { class: "number small" }, `+${each.wins} =${each.draws} −${each.losses}`)))));
  }
}

function eloText(summary: Summary): string {
  if (summary.elo === null) return summary.wins > summary.losses ? "won every game: Elo cannot be told" : "lost every game: Elo cannot be told";
  const error = summary.elo_error === null ? "" : ` ± ${Math.round(summary.elo_error)}`;
  return `${summary.elo >= 0 ? "+" : "−"}${Math.abs(Math.round(summary.elo))}${error} Elo`;
}

// Elo with its error on a line from -400 to +400.
function eloBar(summary: Summary): Element {
  const place = (elo: number) => 50 + Math.max(-400, Math.min(400, elo)) / 8;
  const elo = summary.elo ?? (summary.wins > summary.losses ? 400 : -400), error = summary.elo_error ?? 0;
  return svg("svg", { class: "elo-bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": eloText(summary) },
    svg("line", { x1: 0, y1: 5, x2: 100, y2: 5, class: "graph-middle" }), svg("line", { x1: 50, y1: 1, x2: 50, y2: 9, class: "graph-middle" }),
    svg("line", { x1: place(elo - error), y1: 5, x2: place(elo + error), y2: 5, class: "elo-error" }),
    svg("line", { x1: place(elo), y1: 1, x2: place(elo), y2: 9, class: "elo-mark" }));
}

export const page: Page = new ArenaPage();
