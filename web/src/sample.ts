// What the newest checkpoint of a run says about a position, asked again when there is a newer one.
import { post, stream, type Candidate } from "./api";
import { count, fill, h, percent } from "./dom";
import { wdlBar } from "./wdl";

export interface Checkpoint { id: string; kind: string; changed: number }

const limits = { max_variations: 4, max_depth: 4 };
const nameOf = (checkpoint: Checkpoint) => checkpoint.id.split("/").at(-1)!.replace(/^checkpoint_step_0*/, "step ").replace(/\.pt$/, "");

export class Sample {
  readonly element: HTMLElement;
  private readonly head = h("h3", {});
  private readonly body = h("div", { class: "sample-body" });
  private asked = "";
  private asking: AbortController | null = null;

  constructor(private readonly run: string) {
    this.element = h("article", { class: "card sample", "aria-label": `newest checkpoint of ${run}` }, this.head, this.body);
  }

  // `fen` "": the usual start.
  async show(checkpoint: Checkpoint | undefined, fen: string) {
    const key = checkpoint ? `${checkpoint.id} ${checkpoint.changed} ${fen}` : "";
    if (key === this.asked) return;
    this.asked = key;
    this.stop();
    if (!checkpoint) {
      fill(this.head, this.run);
      fill(this.body, h("p", { class: "small" }, "It has no checkpoint yet."));
      return;
    }
    const controller = this.asking = new AbortController();
    fill(this.head, `${this.run} `, h("span", { class: "small" }, nameOf(checkpoint)));
    fill(this.body, h("p", { class: "small" }, "asks it…"));
    try {
      if (checkpoint.kind === "decoder") await this.think(checkpoint, fen, controller.signal);
      else if (checkpoint.kind === "2048") await this.prefer(checkpoint);
      else await this.predict(checkpoint, fen, controller.signal);
    } catch (error) {
      if (!controller.signal.aborted) fill(this.body, h("p", { class: "small" }, (error as Error).message));
    }
  }

  stop() { this.asking?.abort(); }
  again() { this.asked = ""; }

  private async think(checkpoint: Checkpoint, fen: string, signal: AbortSignal) {
    const lines = h("ol", { class: "sample-lines" });
    const instinct = h("p", {}), final = h("p", {});
    const rows: HTMLElement[] = [];
    for await (const { event, data } of stream("think", { model: checkpoint.id, start: fen || null, ...limits }, signal)) {
      if (event === "error") throw new Error(data.message);
      if (event === "root") {
        fill(instinct, "instinct: ", ...candidates(data.instinct));
        fill(this.body, instinct, lines, final);
      }
      if (event === "node") {
        const row = (rows[data.variation] ??= lines.appendChild(h("li", {})));
        const text = data.san ?? data.uci;
        row.append(h("span", { class: "sample-move" }, data.legal ? text : h("s", {}, text), data.legal ? "" : "?", wdlBar(data.wdl)), " ");
      }
      if (event === "board" && data.wrong?.length) rows[data.variation]!.append(h("span", { class: "wrong-count", title: "squares that differ from the rules" }, `≠${data.wrong.length} `));
      if (event === "final") {
        const where = `/think?player=${encodeURIComponent(`decoder:${checkpoint.id.split("/").map(encodeURIComponent).join("/")}?think=1`)}${fen ? `&fen=${encodeURIComponent(fen)}` : ""}`;
        fill(final, "after thinking: ", h("strong", {}, data.move?.san ?? "no move"), h("span", { class: "small" }, ` ${count(data.stats.tokens)} tokens `), h("a", { href: where }, "open in Think"));
      }
    }
  }

  private async predict(checkpoint: Checkpoint, fen: string, signal: AbortSignal) {
    const player = `${checkpoint.kind}:${checkpoint.id.split("/").map(encodeURIComponent).join("/")}`;
    for await (const { event, data } of stream("move", { player, start: fen || null }, signal)) {
      if (event === "error") throw new Error(data.message);
      if (event === "answer") fill(this.body, h("p", {}, "plays: ", ...candidates(data.moves)));
    }
  }

  private async prefer(checkpoint: Checkpoint) {
    const state = await post<{ preference: { scores: Record<string, number | null>; best: string } }>("2048/prefer", { seed: 1, player: checkpoint.id });
    const scores = Object.entries(state.preference.scores).filter(([, score]) => score !== null).map(([move, score]) => `${move} ${percent(score!)}`);
    fill(this.body, h("p", {}, `first board of seed 1: ${scores.join(", ")}`));
  }
}

function candidates(moves: Candidate[]): (Node | string)[] {
  return moves.slice(0, 5).flatMap((each, i) => [h(i ? "span" : "strong", {}, each.san ?? each.uci), ` ${percent(each.probability)}  `]);
}
