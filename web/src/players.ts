// Choosing a player: who it is, and what its kind lets one set. The choice is a player's name, as docs/PLAYERS.md has it.
import type { PlayerText } from "./api";
import { fill, h } from "./dom";

interface Field { key: string; name: string; min: number; max: number; step: number; help: string }

const fieldsOf: Record<string, Field[]> = {
  search: [{ key: "nodes", name: "nodes", min: 1, max: 100000, step: 1, help: "positions that the search looks at" }],
  engine: [{ key: "movetime", name: "milliseconds", min: 10, max: 30000, step: 10, help: "time for a move" },
    { key: "elo", name: "Elo", min: 0, max: 4000, step: 10, help: "strength that the engine should show; empty: all it has" }],
  negamax: [{ key: "depth", name: "plies", min: 1, max: 6, step: 1, help: "how far it looks" }],
  thinking: [{ key: "max_variations", name: "variations", min: 0, max: 32, step: 1, help: "0: as many as it wants" },
    { key: "max_depth", name: "depth", min: 0, max: 32, step: 1, help: "moves in a variation; 0: as many as it wants" }],
};

function split(name: string): [string, Map<string, string>] {
  const mark = name.indexOf("?");
  const options = new Map<string, string>();
  if (mark >= 0) for (const pair of name.slice(mark + 1).split("&")) options.set(pair.split("=")[0]!, pair.slice(pair.indexOf("=") + 1));
  return [mark < 0 ? name : name.slice(0, mark), options];
}

function join(base: string, options: Map<string, string>): string {
  const text = [...options].map(([key, value]) => `${key}=${value}`).join("&");
  return text ? `${base}?${text}` : base;
}

export class PlayerChooser {
  readonly select: HTMLSelectElement;
  readonly options = h("div", { class: "player-options" });
  private players: PlayerText[] = [];
  private name = "";

  // `thinking`: whether variations and depth of a thought are set here.
  constructor(id: string, private readonly changed: () => void, private readonly thinking = true) {
    this.select = h("select", { id, onchange: () => { this.name = this.select.value; this.showOptions(); this.changed(); } });
  }

  get value(): string { return this.name; }
  get entry(): PlayerText | undefined { return this.players.find((each) => sameBase(each.name, this.name)); }

  // A name that is not there leaves `otherwise`, or the first of the list.
  fill(players: PlayerText[], wanted: string, otherwise?: string) {
    this.players = players;
    const groups: [string, (p: PlayerText) => boolean][] = [
      ["thinks out loud", (p) => p.name.includes("think=1")],
      ["by instinct", (p) => p.name.includes("think=0") || p.kind === "policy" || p.kind === "lc0"],
      ["searches", (p) => p.kind === "search" || p.kind === "negamax"],
      ["engines and others", (p) => p.kind === "engine" || p.kind === "random"],
    ];
    fill(this.select, ...groups.map(([label, fits]) => {
      const members = players.filter(fits);
      return members.length ? h("optgroup", { label }, ...members.map((p) => h("option", { value: p.name }, p.title))) : null;
    }));
    this.set(players.some((each) => sameBase(each.name, wanted)) ? wanted : otherwise ?? this.select.querySelector("option")?.value ?? "");
  }

  set(name: string) {
    this.name = name;
    if (this.entry) this.select.value = this.entry.name;
    this.showOptions();
  }

  private showOptions() {
    const entry = this.entry;
    const kind = entry?.name.includes("think=1") ? "thinking" : entry?.kind ?? "";
    const fields = kind === "thinking" && !this.thinking ? [] : fieldsOf[kind] ?? [];
    fill(this.options, ...fields.map((field) => {
      const id = `${this.select.id}-${field.key}`;
      const input = h("input", { type: "number", id, min: field.min, max: field.max, step: field.step, title: field.help, placeholder: "own",
        value: split(this.name)[1].get(field.key) ?? "", onchange: () => this.setOption(field, input.value) });
      return h("label", { for: id, class: "small", title: field.help }, field.name, " ", input);
    }));
  }

  private setOption(field: Field, value: string) {
    const [base, options] = split(this.name);
    if (value === "") options.delete(field.key);
    else options.set(field.key, String(Math.max(field.min, Math.min(field.max, Number(value)))));
    this.name = join(base, options);
    this.changed();
  }
}

// The same player, whatever its options; a decoder that thinks is another than its instinct.
function sameBase(a: string, b: string): boolean {
  const [one, first] = split(a), [two, second] = split(b);
  return one === two && (first.get("think") ?? "") === (second.get("think") ?? "");
}
