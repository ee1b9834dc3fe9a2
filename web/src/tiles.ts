// A 2048 board with the four preferences on its edges.
import { fill, h } from "./dom";

const sides = ["up", "down", "left", "right"] as const;

export class Tiles {
  readonly element: HTMLElement;
  private readonly field = h("div", { class: "tiles" });
  private readonly wishes = new Map<string, HTMLElement>();
  private readonly spoken = h("p", { class: "visually-hidden" });

  constructor() {
    for (let i = 0; i < 16; i++) this.field.append(h("div", { class: "cell", style: at(i) }));
    this.element = h("div", { class: "cross" }, this.field, this.spoken);
    for (const side of sides) {
      const wish = h("div", { class: `wish ${side}` });
      this.wishes.set(side, wish);
      this.element.append(wish);
    }
  }

  // Ranks of the 16 cells; `before`: what slid, to tell the new tile.
  show(ranks: number[], slid?: number[]) {
    for (const tile of this.field.querySelectorAll(".tile")) tile.remove();
    ranks.forEach((rank, i) => {
      if (!rank) return;
      const value = 2 ** rank;
      const tile = h("div", { class: `tile${value > 999 ? value > 9999 ? " longer" : " long" : ""}${slid && !slid[i] ? " new" : ""}`,
        style: { ...at(i), ...shade(rank) } }, String(value));
      this.field.append(tile);
    });
    this.spoken.textContent = [0, 1, 2, 3].map((row) => ranks.slice(4 * row, 4 * row + 4).map((rank) => (rank ? 2 ** rank : "empty")).join(", ")).join("; ");
  }

  // Shares of the moves as bars; `values`: they are expected values, and only their order counts.
  wish(scores: Record<string, number | null> | null, best: string | null, values = false) {
    const known = sides.map((side) => scores?.[side]).filter((each): each is number => typeof each === "number");
    const most = Math.max(...known), least = Math.min(...known);
    for (const side of sides) {
      const score = scores?.[side];
      const element = this.wishes.get(side)!;
      element.classList.toggle("best", side === best);
      if (typeof score !== "number") { fill(element); continue; }
      const share = values ? (most > least ? 0.15 + 0.85 * (score - least) / (most - least) : 1) : score / (most || 1);
      const long = `${Math.round(8 + 88 * share)}px`;
      const bar = side === "up" || side === "down" ? { width: long, height: "8px" } : { height: long, width: "8px" };
      fill(element, h("span", {}, values ? behind(score - most) : `${Math.round(100 * score)}%`), h("i", { style: bar }));
      element.title = `${side}: ${score}`;
    }
  }
}

// An expected value, as its distance from the best.
function behind(value: number): string {
  if (value === 0) return "best";
  const size = Math.abs(value);
  return `−${size >= 1000 ? `${(size / 1000).toFixed(1)}k` : size >= 10 ? Math.round(size) : size.toPrecision(2)}`;
}

function at(cell: number): Record<string, string> {
  return { left: `${2 + 24.5 * (cell % 4)}%`, top: `${2 + 24.5 * Math.floor(cell / 4)}%` };
}

// From pale to deep as tiles grow; ink that reads on it.
function shade(rank: number): Record<string, string> {
  const deep = Math.min(1, (rank - 1) / 11);
  const hue = 42 - 30 * deep;
  const light = 88 - 46 * deep;
  return { background: `hsl(${hue} ${40 + 35 * deep}% ${light}%)`, color: light > 60 ? "#1b2430" : "#ffffff" };
}
