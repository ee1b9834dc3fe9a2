// Think: the thought of a network as it is written, and play against any player.
import { get, post, remove, stream, type Candidate, type PlayerText, type Wdl } from "../api";
import { BoardView, placementOf, type Arrow, type Shown } from "../board";
import { count, fill, h, percent } from "../dom";
import { Editor } from "../editor";
import { Game } from "../game";
import { chooseOpening } from "../openings";
import { PlayerChooser } from "../players";
import { announce, emptyState, fail, remember, tell, title, type Page } from "../shell";
import { Strip } from "../strip";
import { setWdl, wdlBar } from "../wdl";

interface Node {
  uci: string; san?: string; legal: boolean; probability?: number; wdl?: Wdl;
  written?: string; rules?: string; wrong?: string[]; fen?: string; chip?: HTMLElement;
}
interface Variation { nodes: Node[]; ended: boolean; score?: string; row?: HTMLElement }
interface Final { uci: string; san: string; wdl?: Wdl; note: string }

type Side = "both" | "white" | "black";  // Whom the visitor plays.

const optionFields: [string, string, number, number, number, string][] = [
  ["max_variations", "variations", 0, 32, 1, "0: as many as the network wants"],
  ["max_depth", "depth", 0, 32, 1, "moves in a variation; 0: as many as it wants"],
  ["thinking_temperature", "temperature of lines", 0, 5, 0.1, "0: the most likely move each time"],
  ["final_temperature", "of the final move", 0, 5, 0.1, "0: the most likely move"],
  ["structure_temperature", "of boards and ends", 0, 5, 0.1, "of the boards it writes, and where lines end"],
  ["seed", "seed", 0, 999999, 1, "the same seed gives the same thought"],
];

class ThinkPage implements Page {
  readonly keys: [string, string][] = [
    ["space", "think"], ["s", "stop"], ["← →", "step through the game"], ["Home End", "its start, its end"],
    ["f", "flip the board"], ["n", "new game"], ["u", "take back"], ["/", "paste a FEN, PGN or moves"],
    ["e", "set up a position"], ["o", "openings"], ["r", "the same again, with the next seed"],
  ];

  private game = new Game(() => this.positionChanged());
  private board!: BoardView;
  private editor!: Editor;
  private players: PlayerText[] = [];
  private chooser = new PlayerChooser("player", () => this.choose(), false);
  private get player() { return this.chooser.value; }
  private side: Side = "both";
  private flipped = false;
  private options: Record<string, number | boolean | string> = { legal: true, precision: "f32" };

  private running: AbortController | null = null;
  private quickly: AbortController | null = null;
  private askedEarly = false;        // To think, before players and position were there.
  private job = "";                  // Its number at the server.
  private thoughtOf = "";            // The FEN it is about.
  private instinct: Candidate[] = [];
  private variations: Variation[] = [];
  private final: Final | null = null;
  private values = new Map<string, Wdl>();
  private strip = new Strip();
  private preview: Shown | null = null;

  private el!: Record<"think" | "instinct" | "tree" | "after" | "counter" | "moves" | "fen" | "wdl" |
    "wdlText" | "status" | "side", HTMLElement>;

  mount(root: HTMLElement, params: URLSearchParams) {
    this.game = new Game(() => this.positionChanged());
    this.side = (params.get("side") as Side) ?? "both";
    this.flipped = params.get("flip") === "1" || this.side === "black";
    for (const [key] of optionFields) if (params.has(key)) this.options[key] = Number(params.get(key));
    if (params.get("legal") === "0") this.options.legal = false;
    this.askedEarly = false;
    this.forget();
    this.build(root);
    void this.begin(params);
    return () => { this.stop(); this.editor.hide(); };
  }

  private async begin(params: URLSearchParams) {
    try {
      this.players = (await get<{ players: PlayerText[] }>("players")).players;
      this.fillPlayers(params.get("player") ?? "");
      const moves = (params.get("moves") ?? "").split(",").filter(Boolean);
      const ply = params.has("ply") ? Number(params.get("ply")) : moves.length;
      await this.game.load(params.get("fen"), moves, ply);
      if (params.get("think") === "1" || this.askedEarly) void this.think();
    } catch (error) { fail(error); }
  }

  // --- The page's parts ---

  private build(root: HTMLElement) {
    this.board = new BoardView();
    this.board.flip(this.flipped);
    this.editor = new Editor(this.board, (fen) => this.usePosition(fen), () => this.leaveEditor());
    this.el = {
      think: h("button", { class: "primary", onclick: () => this.toggle() }, "Think"),
      instinct: h("div", { class: "verdict instinct" }), tree: h("ol", { class: "tree", "aria-label": "variations" }),
      after: h("div", { class: "verdict after" }), counter: h("div", { class: "counter" }),
      moves: h("ol", { class: "moves", "aria-label": "moves of the game" }),
      fen: h("input", { id: "fen", class: "fen", spellcheck: "false", autocomplete: "off",
        placeholder: "paste a FEN, a PGN or moves", "aria-label": "position: FEN, PGN or moves",
        onchange: () => this.paste(), onfocus: () => (this.el.fen as HTMLInputElement).select() }),
      wdl: wdlBar(undefined, "wide"), wdlText: h("span", { class: "wdl-text" }),
      status: h("span", { class: "status", role: "status" }), side: h("div", { class: "segments", role: "group", "aria-label": "you play" }),
    };
    root.append(
      h("section", { class: "stage", "aria-label": "board" }, this.board.element,
        h("div", { class: "under" },
          h("div", { class: "evaluation" }, this.el.wdl, this.el.wdlText),
          h("div", { class: "tools" },
            tool("|◀", "start of the game (Home)", () => void this.game.go(0)),
            tool("◀", "one move back (←)", () => void this.game.go(this.game.ply - 1)),
            tool("▶", "one move on (→)", () => void this.game.go(this.game.ply + 1)),
            tool("▶|", "end of the game (End)", () => void this.game.go(this.game.moves.length)),
            h("span", { class: "gap" }),
            tool("Flip", "flip the board (f)", () => this.flip()),
            tool("New", "new game (n)", () => this.newGame()),
            tool("Take back", "take back (u)", () => this.takeBack()),
            h("span", { class: "gap" }),
            tool("Set up", "Set up a position (e)", () => this.edit()),
            tool("Openings", "Openings (o)", () => void this.openOpening()),
            h("span", { class: "gap" }),
            tool("PGN", "copy the game as PGN", () => void this.copyPgn()),
            tool("FEN", "copy the position as FEN", () => void this.copy(this.game.fen, "FEN"))),
          this.el.moves, this.el.fen)),
      h("section", { class: "panel", "aria-label": "thought" }, this.editor.element,
        h("div", { class: "ask" },
          h("label", { for: "player" }, "Who thinks"), this.chooser.select, this.chooser.options,
          h("div", { class: "ask-row" }, this.el.think, this.el.side)),
        this.buildOptions(), this.el.status, this.el.instinct, this.el.tree, this.el.after, this.el.counter,
        h("details", { class: "raw" }, h("summary", {}, "Tokens as written"), this.strip.element)));
    this.fillSides();
  }

  private buildOptions(): HTMLElement {
    const fields = optionFields.map(([key, name, min, max, step, help]) => {
      const input = h("input", { type: "number", id: key, min, max, step, value: this.options[key] ?? 0, title: help,
        onchange: () => { this.options[key] = Number(input.value); this.save(); } });
      return h("label", { for: key, title: help }, h("span", {}, name), input);
    });
    const legal = h("input", { type: "checkbox", checked: this.options.legal === true,
      onchange: () => { this.options.legal = legal.checked; this.save(); } });
    const precision = h("select", { onchange: () => { this.options.precision = precision.value; } },
      h("option", {}, "f32"), h("option", {}, "int8"));
    return h("details", { class: "options" }, h("summary", {}, "How it thinks"),
      h("div", { class: "option-grid" }, ...fields,
        h("label", { title: "else it may write moves against the rules" }, h("span", {}, "legal moves only"), legal),
        h("label", { title: "of the network's weights" }, h("span", {}, "precision"), precision)),
      h("div", { class: "ask-row" },
        h("button", { title: "the same thought again", onclick: () => void this.think() }, "Again"),
        h("button", { title: "with the next seed (r)", onclick: () => this.another() }, "Another")));
  }

  private fillPlayers(wanted: string) {
    this.chooser.fill(this.players, wanted);
    this.fitPlayer();
    if (!this.players.some((p) => p.name.includes("think=1"))) {
      this.el.tree.before(emptyState("No network here thinks out loud",
        "Train a decoder (docs/DECODER.md) or give its folder: kibitz serve --models DIR. Other players can be asked meanwhile."));
    }
  }

  // Only who thinks out loud has temperatures of lines, and tokens.
  private fitPlayer() {
    for (const part of document.querySelectorAll<HTMLElement>(".options, .raw")) part.hidden = !this.player.includes("think=1");
    this.setTitle();
  }

  // What runs, for a row of tabs.
  private setTitle() {
    const name = this.chooser.entry?.title;
    title(`${this.running ? "… " : ""}${name ? `${name} · Think` : "Think"}`);
  }

  private fillSides() {
    const names: [Side, string, string][] = [
      ["both", "Analyse", "move both sides"], ["white", "Play White", "the player answers for Black"],
      ["black", "Play Black", "the player answers for White"]];
    fill(this.el.side, ...names.map(([side, name, help]) =>
      h("button", { "aria-pressed": String(this.side === side), title: help, onclick: () => this.takeSide(side) }, name)));
  }

  // --- What the visitor does ---

  key(key: string): boolean {
    switch (key) {
      case " ": this.toggle(); return true;
      case "s": this.halt(); return true;
      case "ArrowLeft": void this.game.go(this.game.ply - 1); return true;
      case "ArrowRight": void this.game.go(this.game.ply + 1); return true;
      case "Home": void this.game.go(0); return true;
      case "End": void this.game.go(this.game.moves.length); return true;
      case "f": this.flip(); return true;
      case "n": this.newGame(); return true;
      case "u": this.takeBack(); return true;
      case "r": this.another(); return true;
      case "e": this.edit(); return true;
      case "o": void this.openOpening(); return true;
      case "/": this.el.fen.focus(); return true;
      case "Escape": if (!this.editor.open) return false; this.leaveEditor(); return true;
      default: return false;
    }
  }

  private choose() { this.fitPlayer(); this.stop(); this.forget(); this.positionChanged(); }
  private edit() {
    if (this.editor.open) { this.leaveEditor(); return; }
    this.stop();
    this.board.accept([], null);
    this.editor.show(this.game.fen);
  }
  // The server says what is wrong with a position; the editor stays open then.
  private async usePosition(fen: string) {
    try {
      await post("position", { start: fen });
      this.editor.hide();
      this.values.clear();
      await this.game.load(fen, []);
    } catch (error) { fail(error); }
  }
  private leaveEditor() { this.editor.hide(); this.positionChanged(); }
  private async openOpening() {
    try {
      const opening = await chooseOpening();
      if (!opening) return;
      this.stop();
      this.editor.hide();
      await this.game.load(null, opening.moves.split(" "));
    } catch (error) { fail(error); }
  }
  private takeSide(side: Side) {
    this.side = side;
    if (side !== "both") { this.flipped = side === "black"; this.board.flip(this.flipped); }
    this.fillSides();
    this.positionChanged();
  }
  private flip() { this.flipped = !this.flipped; this.board.flip(this.flipped); this.save(); }
  private newGame() { this.stop(); this.values.clear(); void this.game.load(null, []).catch(fail); }
  private takeBack() {
    this.stop();
    const mine = this.side === "both" ? 1 : this.game.now?.turn === this.side ? 2 : 1;
    void this.game.takeBack(mine).catch(fail);
  }
  private paste() {
    const text = (this.el.fen as HTMLInputElement).value.trim();
    if (!text || text === this.game.fen) return;
    this.stop();
    this.game.paste(text).then(() => this.el.fen.blur()).catch(fail);
  }
  private async copyPgn() {
    const me = this.players.find((p) => p.name === this.player)?.title ?? "Kibitz";
    const sides = { White: this.side === "white" ? "Visitor" : me, Black: this.side === "black" ? "Visitor" : me };
    try {
      const { pgn } = await post<{ pgn: string }>("pgn", { start: this.game.start, moves: this.game.moves, ...sides });
      await this.copy(pgn, "PGN");
    } catch (error) { fail(error); }
  }
  private async copy(text: string, what: string) {
    await navigator.clipboard.writeText(text).then(() => tell(`${what} copied`), () => {
      (this.el.fen as HTMLInputElement).value = text;
      this.el.fen.focus();
    });
  }
  private another() {
    const seed = Number(this.options.seed ?? 0) + 1;
    this.options.seed = seed;
    const field = document.getElementById("seed") as HTMLInputElement | null;
    if (field) field.value = String(seed);
    void this.think();
  }
  private toggle() { if (this.running) this.halt(); else void this.think(); }
  // Stops the thought but waits for what it knows by then.
  private halt() {
    if (this.job) void remove(`jobs/${this.job}`);
    else this.stop();
  }
  private stop() {
    this.running?.abort();
    this.quickly?.abort();
  }

  private save() {
    const shown: Record<string, string | number | null> = {
      fen: this.game.start && this.game.start !== startFen ? this.game.start : null, moves: this.game.moves.join(","),
      ply: this.game.ply === this.game.moves.length ? null : this.game.ply, player: this.player,
      side: this.side === "both" ? null : this.side, flip: this.flipped && this.side !== "black" ? 1 : null,
      legal: this.options.legal ? null : 0,
    };
    for (const [key] of optionFields) shown[key] = Number(this.options[key] ?? 0) || null;
    remember(shown);
  }

  // --- The position ---

  private positionChanged() {
    const now = this.game.now;
    if (!now) return;
    this.editor.hide();
    if (this.thoughtOf !== now.fen) { this.stop(); this.forget(); }
    this.preview = null;
    this.save();
    this.showMoves();
    (this.el.fen as HTMLInputElement).value = now.fen;
    const mine = this.side === "both" || now.turn === this.side;
    this.board.accept(mine && !now.ending ? now.legal : [], mine ? (uci) => void this.played(uci) : null);
    this.redraw();
    this.showValue();
    this.invite();
    if (now.ending) this.el.status.textContent = `${now.result}, ${now.ending}`;
    else if (!mine && this.game.ply === this.game.moves.length) void this.think(true);
    else void this.loadInstinct();
  }

  private async played(uci: string) {
    this.stop();
    await this.game.play(uci).catch(fail);
    const last = this.game.line?.moves[this.game.ply - 1];
    if (last) announce(last.san);
  }

  private redraw() {
    if (this.preview) { this.board.show(this.preview, false); return; }
    const now = this.game.now;
    if (!now) return;
    this.board.show({ placement: now.fen.split(" ")[0]!, turn: now.turn, check: now.check,
      last: this.game.ply ? this.game.moves[this.game.ply - 1] : null, arrows: this.arrows() });
  }

  private arrows(): Arrow[] {
    const first = this.instinct[0];
    const arrows: Arrow[] = [];
    if (first && first.uci !== this.final?.uci) arrows.push({ uci: first.uci, kind: "instinct" });
    if (this.final) arrows.push({ uci: this.final.uci, kind: "model" });
    return arrows;
  }

  private showMoves() {
    const line = this.game.line;
    if (!line) return;
    const black = line.start.split(" ")[1] === "b" ? 1 : 0;
    const first = Number(line.start.split(" ")[5] ?? 1);
    const rows: HTMLElement[] = [];
    line.moves.forEach((move, i) => {
      const at = i + black;
      if (at % 2 === 0 || i === 0) {
        rows.push(h("li", {}, h("span", { class: "number" }, `${first + Math.floor(at / 2)}.${at % 2 ? ".." : ""}`)));
      }
      rows.at(-1)!.append(h("button", { class: "move", "aria-current": this.game.ply === i + 1 ? "step" : null,
        onclick: () => void this.game.go(i + 1) }, move.san));
    });
    fill(this.el.moves, ...(rows.length ? rows : [h("li", { class: "hint" }, "Drag a piece, or paste a game below.")]));
    const shown = this.el.moves.querySelector<HTMLElement>("[aria-current]");
    if (shown) this.el.moves.scrollTop = shown.offsetTop - this.el.moves.offsetTop - 32;
  }

  private showValue() {
    const wdl = this.values.get(this.game.fen);
    setWdl(this.el.wdl, wdl);
    this.el.wdlText.textContent = wdl ? `White ${percent(wdl.win)} · draw ${percent(wdl.draw)} · Black ${percent(wdl.loss)}` : "no value yet";
  }

  // Before the first thought: what will happen.
  private invite() {
    if (this.running || this.variations.length || this.el.tree.children.length) return;
    const thinks = this.player.includes("think=1");
    fill(this.el.tree, h("li", { class: "invitation" }, h("kbd", {}, "space"), thinks
      ? " It writes candidate lines, imagines the board after every move, values it, then decides."
      : " It answers with its lines and their values."));
  }

  // --- Asking ---

  private forget() {
    this.thoughtOf = this.game.fen;
    this.instinct = [];
    this.variations = [];
    this.final = null;
    this.strip.clear();
    if (!this.el) return;
    for (const part of ["instinct", "tree", "after", "counter", "status"] as const) fill(this.el[part]);
  }

  // Shows the policy of the network for the present position, without a thought.
  private async loadInstinct() {
    const player = this.players.find((p) => p.name === this.player);
    if (!player || !["decoder", "policy", "lc0"].includes(player.kind) || this.instinct.length) return;
    this.quickly?.abort();
    const controller = this.quickly = new AbortController();
    const fen = this.game.fen;
    const name = player.name.replace("think=1", "think=0&history=0");
    try {
      await new Promise((done) => setTimeout(done, 120));
      if (controller.signal.aborted || this.running) return;
      for await (const { event, data } of stream("move", { player: name, ...this.game.body }, controller.signal)) {
        if (event === "error") throw new Error(data.message);
        if (event !== "answer" || this.game.fen !== fen) continue;
        this.instinct = data.moves;
        const wdl = data.wdl ?? data.lines[0]?.wdl;
        if (wdl && !this.values.has(fen)) this.values.set(fen, wdl);
        this.showInstinct();
        this.showValue();
        this.redraw();
      }
    } catch (error) { if (!controller.signal.aborted) fail(error); }
  }

  async think(andPlay = false) {
    if (!this.player || !this.game.now) { this.askedEarly = true; return; }
    if (this.game.now.ending) return;
    this.stop();
    this.forget();
    const controller = this.running = new AbortController();
    this.job = "";
    this.setRunning(true);
    const play = andPlay || (this.side !== "both" && this.game.now.turn !== this.side);
    const thinks = this.player.includes("think=1");
    try {
      await (thinks ? this.readThought(controller) : this.readAnswer(controller));
      if (play && this.final && !controller.signal.aborted) {
        const uci = (this.final as Final).uci;
        await new Promise((done) => setTimeout(done, thinks ? 500 : 250));
        if (!controller.signal.aborted) { this.running = null; await this.game.play(uci); }
      }
    } catch (error) {
      if (!controller.signal.aborted) fail(error);
      else this.el.status.textContent = "stopped";
    }
    if (this.running === controller || this.running === null) { this.running = null; this.setRunning(false); }
  }

  private setRunning(running: boolean) {
    this.el.think.textContent = running ? "Stop" : "Think";
    this.el.think.classList.toggle("stop", running);
    this.el.think.setAttribute("title", running ? "stop (s)" : "think (space)");
    if (running) this.el.status.textContent = "…";
    else if (this.el.status.textContent === "…") this.el.status.textContent = "";
    this.strip.writing(running);
    this.setTitle();
  }

  private async readThought(controller: AbortController) {
    const id = decodeURIComponent(this.player.replace(/^decoder:/, "").replace(/\?.*$/, ""));
    const body = { model: id, ...this.game.body, ...this.options };
    for await (const { event, data } of stream("think", body, controller.signal)) {
      if (data.tokens?.length) { this.strip.add(data.tokens); this.count(); }
      if (event === "waiting") this.el.status.textContent = data.ahead ? `waits for ${data.ahead} other thoughts` : "next in line";
      if (event === "job") this.job = data.id;
      if (event === "start") this.el.status.textContent = "reads the position";
      if (event === "root") this.takeRoot(data);
      if (event === "node") this.takeNode(data);
      if (event === "board") this.takeBoard(data);
      if (event === "variation_end") this.variations[data.variation]!.ended = data.ended;
      if (event === "final") this.takeFinal(data);
      if (event === "error") throw new Error(data.message);
    }
  }

  private takeRoot(data: any) {
    this.instinct = data.instinct;
    if (data.wdl) this.values.set(this.game.fen, data.wdl);
    this.el.status.textContent = "writes its lines";
    this.showInstinct();
    this.showValue();
    this.redraw();
  }

  private takeNode(data: any) {
    const variation = (this.variations[data.variation] ??= { nodes: [], ended: false });
    const node: Node = { uci: data.uci, san: data.san, legal: data.legal, probability: data.probability, wdl: data.wdl };
    variation.nodes[data.ply] = node;
    this.addChip(variation, data.variation, node, data.ply);
  }

  private takeBoard(data: any) {
    const node = this.variations[data.variation]?.nodes[data.ply];
    if (!node) return;
    this.strip.drafted(data.drafted, data.kept, data.wrong?.length ?? 0);
    Object.assign(node, { written: data.written, rules: data.rules, wrong: data.wrong, fen: data.fen });
    node.chip?.classList.toggle("has-wrong", !!data.wrong?.length);
    if (data.wrong?.length) {
      node.chip?.append(h("span", { class: "wrong-count", title: "squares that differ from the rules" }, `≠${data.wrong.length}`));
    }
  }

  private takeFinal(data: any) {
    if (data.move) {
      const rank = this.instinct.findIndex((each) => each.uci === data.move.uci);
      const note = data.by_instinct ? "the thought was cut off; this is its instinct"
        : rank === 0 ? "as its instinct said" : rank > 0 ? `was ${ordinal(rank + 1)}` : "not among its first ideas";
      this.final = { ...data.move, wdl: data.wdl, note };
      if (data.wdl) this.values.set(this.game.fen, data.wdl);
    }
    this.el.status.textContent = data.end === "finished" ? "" : data.end === "no_room" ? "its sequence is full" : "stopped";
    const stats = data.stats;
    fill(this.el.counter,
      figure(count(stats.tokens), "tokens"), figure(count(Math.round(stats.tokens_per_second)), "tokens/s"),
      figure(String(stats.passes), "passes"), figure(count(stats.accepted), "tokens saved by drafts"),
      figure(stats.drafted ? percent(stats.accepted / stats.drafted) : "–", "of the rules' drafts held"));
    this.showFinal();
  }

  private async readAnswer(controller: AbortController) {
    const body = { player: this.player, lines: 5, seed: this.options.seed ?? 0, ...this.game.body };
    for await (const { event, data } of stream("move", body, controller.signal)) {
      if (event === "waiting" && data.ahead) this.el.status.textContent = `waits for ${data.ahead} others`;
      if (event === "error") throw new Error(data.message);
      if (event !== "progress" && event !== "answer") continue;
      this.el.status.textContent = "";
      this.instinct = [];
      this.showLines(data);
      if (event === "answer" && data.move) {
        this.final = { ...data.move, note: data.remarks?.[0] ?? `${count(data.nodes)} positions` };
        // An engine tells no probabilities: all are the same.
        const told = data.moves.some((move: Candidate) => move.probability !== data.moves[0].probability);
        this.instinct = told ? data.moves : [];
        this.showInstinct("likely");
        this.showFinal();
      }
      const wdl = data.lines[0]?.wdl ?? data.wdl;
      if (wdl) { this.values.set(this.game.fen, wdl); this.showValue(); }
    }
  }

  private showLines(data: any) {
    fill(this.el.tree);
    this.variations = data.lines.map((line: any) => ({ ended: true, score: scoreText(line), nodes: line.pv.map((move: any, i: number): Node =>
      ({ ...move, legal: true, wdl: i === 0 ? line.wdl : undefined })) }));
    this.variations.forEach((variation, i) => variation.nodes.forEach((node, ply) => this.addChip(variation, i, node, ply)));
  }

  // --- Showing a thought ---

  private showInstinct(word = "instinct") {
    const first = this.instinct[0];
    if (!first) return;
    fill(this.el.instinct,
      h("span", { class: "verdict-word" }, h("i", { class: "key dashed", "aria-hidden": "true" }), word),
      h("strong", {}, first.san ?? first.uci), h("span", { class: "number" }, percent(first.probability)),
      h("span", { class: "others" }, ...this.instinct.slice(1, 5).map((each) =>
        h("button", { class: "other", onmouseenter: () => this.hint(each.uci), onmouseleave: () => this.hint(null),
          onfocus: () => this.hint(each.uci), onblur: () => this.hint(null), onclick: () => void this.tryMove(each.uci) },
        `${each.san ?? each.uci} `, h("span", { class: "number" }, percent(each.probability))))));
  }

  private tryMove(uci: string) {
    if (this.side === "both" || this.game.now?.turn === this.side) return this.played(uci);
    return undefined;
  }

  private hint(uci: string | null) {
    const now = this.game.now!;
    this.board.show({ placement: now.fen.split(" ")[0]!, turn: now.turn, check: now.check,
      last: this.game.ply ? this.game.moves[this.game.ply - 1] : null,
      arrows: uci ? [...this.arrows(), { uci, kind: "hover" }] : this.arrows() }, false);
  }

  private addChip(variation: Variation, index: number, node: Node, ply: number) {
    if (!variation.row) {
      this.el.tree.querySelector(".invitation")?.remove();
      variation.row = h("li", { class: "variation" }, h("span", { class: "rank" }, String(index + 1)), h("div", { class: "chips" }),
        variation.score ? h("span", { class: "score number" }, variation.score) : null);
      this.el.tree.append(variation.row);
    }
    const name = node.san ?? node.uci;
    const chip = h("button", { class: `chip${node.legal ? "" : " illegal"}`,
      onmouseenter: () => void this.look(variation, ply), onmouseleave: () => this.lookAway(),
      onfocus: () => void this.look(variation, ply), onblur: () => this.lookAway(),
      onclick: () => void this.look(variation, ply) },
    h("span", { class: "chip-move" }, node.legal ? name : h("s", {}, name), node.legal ? null : "?",
      node.legal ? null : h("span", { class: "visually-hidden" }, " against the rules")),
    node.probability !== undefined && ply === 0 ? h("span", { class: "number" }, percent(node.probability)) : null,
    wdlBar(node.wdl));
    node.chip = chip;
    variation.row.querySelector(".chips")!.append(chip);
  }

  // The board of a node, as the model wrote it.
  private async look(variation: Variation, ply: number) {
    const node = variation.nodes[ply]!;
    const line = variation.nodes.slice(0, ply + 1).map((each) => each.san ?? each.uci).join(" ");
    if (!node.written && !node.fen && node.legal) {
      const body = { start: this.game.fen, moves: variation.nodes.slice(0, ply + 1).map((each) => each.uci) };
      node.fen = await post<{ fen: string }>("position", body).then((position) => position.fen, () => undefined);
    }
    if (node.written) {
      const wrong = (node.wrong ?? []).map((square) => {
        const at = (square.charCodeAt(1) - 49) * 8 + square.charCodeAt(0) - 97;
        return { square, written: node.written![at]!, rules: node.rules![at]! };
      });
      const words = wrong.length ? `: ${wrong.length} square${wrong.length > 1 ? "s differ" : " differs"} from the rules` : "";
      this.preview = { placement: placementOf(node.written), last: node.uci.slice(0, 4), wrong,
        caption: `the board it imagined after ${line}${words}` };
    } else if (node.fen) {
      this.preview = { placement: node.fen.split(" ")[0]!, last: node.uci.slice(0, 4), caption: `after ${line}` };
    } else return;
    this.redraw();
  }

  private lookAway() { this.preview = null; this.redraw(); }

  private showFinal() {
    const final = this.final;
    if (!final) return;
    for (const variation of this.variations) {
      const chosen = variation.nodes[0]?.uci === final.uci;
      variation.row?.classList.toggle("chosen", chosen);
      if (chosen && !this.el.tree.querySelector(".chosen-word")) {
        variation.row?.append(h("span", { class: "chosen-word" }, "chosen"));
      }
    }
    fill(this.el.after,
      h("span", { class: "verdict-word" }, h("i", { class: "key solid", "aria-hidden": "true" }),
        this.player.includes("think=1") ? "after thinking" : "plays"),
      h("strong", {}, final.san), h("span", { class: "note" }, final.note),
      this.side === "both" ? h("button", { class: "play-it", onclick: () => void this.played(final.uci) }, "Play it") : null);
    announce(`after thinking: ${final.san}, ${final.note}`);
    this.showValue();
    this.redraw();
  }

  private count() {
    if (this.running) fill(this.el.counter, figure(count(Math.max(0, this.strip.count - 68)), "tokens"));
  }
}

const startFen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

// Centipawns or mate of an engine's line, White's view.
function scoreText(line: { cp?: number; mate?: number }): string | undefined {
  if (line.mate !== undefined) return `#${line.mate}`;
  if (line.cp === undefined) return undefined;
  return `${line.cp > 0 ? "+" : line.cp < 0 ? "−" : ""}${(Math.abs(line.cp) / 100).toFixed(2)}`;
}

function ordinal(n: number): string {
  const last = n % 100 > 10 && n % 100 < 14 ? 0 : n % 10;
  return n + (last === 1 ? "st" : last === 2 ? "nd" : last === 3 ? "rd" : "th");
}

function figure(value: string, name: string): HTMLElement {
  return h("span", { class: "figure" }, h("b", { class: "number" }, value), ` ${name}`);
}

function tool(text: string, help: string, use: () => void): HTMLElement {
  return h("button", { class: "tool", title: help, "aria-label": help, onclick: use }, text);
}

export const page: Page = new ThinkPage();
