// A 2048 board with the four preferences on its edges.
import { fill, h } from "./dom";

const sides = ["up", "down", "left", "right"] as const;
const slideTime = 120;  // Milliseconds, as in the style sheet.
const reduced = matchMedia("(prefers-reduced-motion: reduce)");

export class Tiles {
  readonly element: HTMLElement;
  private readonly field = h("div", { class: "tiles" });
  private readonly wishes = new Map<string, HTMLElement>();
  private readonly spoken = h("p", { class: "visually-hidden" });
  private ranks: number[] = Array<number>(16).fill(0);
  private timer = 0;

  constructor() {
    for (let i = 0; i < 16; i++) this.field.append(h("div", { class: "cell", style: at(i) }));
    this.element = h("div", { class: "cross" }, this.field, this.spoken);
    for (const side of sides) {
      const wish = h("div", { class: `wish ${side}` });
      this.wishes.set(side, wish);
      this.element.append(wish);
    }
  }

  // Ranks of the 16 cells. With a move and what it slid to, the tiles go there first.
  show(ranks: number[], move?: string, slid?: number[]) {
    clearTimeout(this.timer);
    const paths = move && slid && !reduced.matches ? slide(this.ranks, move) : null;
    const before = this.ranks;
    this.ranks = ranks;
    this.spoken.textContent = [0, 1, 2, 3].map((row) => ranks.slice(4 * row, 4 * row + 4).map((rank) => (rank ? 2 ** rank : "empty")).join(", ")).join("; ");
    // Where a move was missed, there is nothing to slide.
    if (!paths || paths.after.some((rank, i) => rank !== slid![i])) { this.place(ranks, slid); return; }
    this.place(before);
    const tiles = [...this.field.querySelectorAll<HTMLElement>(".tile")];
    void this.field.offsetWidth;  // The tiles begin where they were.
    for (const tile of tiles) {
      const to = at(paths.to[Number(tile.dataset.cell)]!);
      tile.style.left = to.left!;
      tile.style.top = to.top!;
    }
    this.timer = window.setTimeout(() => this.place(ranks, slid), slideTime);
  }

  private place(ranks: number[], slid?: number[]) {
    for (const tile of this.field.querySelectorAll(".tile")) tile.remove();
    ranks.forEach((rank, i) => {
      if (!rank) return;
      const value = 2 ** rank;
      this.field.append(h("div", { class: `tile${value > 999 ? value > 9999 ? " longer" : " long" : ""}${slid && !slid[i] ? " new" : ""}`, "data-cell": i,
        style: { ...at(i), ...shade(rank) } }, String(value)));
    });
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

// Where each tile goes; for the eye alone, the server has the rules.
function slide(ranks: number[], move: string): { to: number[]; after: number[] } {
  const to = ranks.map((_, i) => i), after = Array<number>(16).fill(0);
  for (let line = 0; line < 4; line++) {
    // The cells of a line, from the edge that tiles slide to.
    const cells = [0, 1, 2, 3].map((i) => (move === "left" ? 4 * line + i : move === "right" ? 4 * line + 3 - i : move === "up" ? 4 * i + line : 4 * (3 - i) + line));
    let free = 0, merges = false;
    for (const cell of cells) {
      const rank = ranks[cell]!;
      if (!rank) continue;
      if (merges && after[cells[free - 1]!] === rank) {
        after[cells[free - 1]!]!++;
        to[cell] = cells[free - 1]!;
        merges = false;
      } else {
        to[cell] = cells[free]!;
        after[cells[free++]!] = rank;
        merges = true;
      }
    }
  }
  return { to, after };
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

// From pale to deep as tiles grow: dark ink up to 256, white ink from 512 on, each at 4.5:1 at least.
function shade(rank: number): Record<string, string> {
  const deep = Math.min(1, (rank - 1) / 14);
  const pale = rank < 9;
  const light = pale ? 88 - 3 * (rank - 1) : Math.max(26, 40 - 2 * (rank - 9));
  return { background: `hsl(${42 - 34 * deep} ${40 + 35 * deep}% ${light}%)`, color: pale ? "#1b2430" : "#ffffff" };
}
