// The board of every chess page: cm-chessboard for squares, pieces and dragging; above it our own layer for
// arrows, legal targets and what the model got wrong.
import "cm-chessboard/assets/chessboard.css";
import { Chessboard, COLOR, INPUT_EVENT_TYPE, type InputEvent } from "cm-chessboard/src/Chessboard.js";
import sprite from "cm-chessboard/assets/pieces/staunty.svg?url";
import { h, svg } from "./dom";

export interface Arrow {
  uci: string;
  kind: "model" | "instinct" | "share" | "hover";
  weight?: number;  // 0 to 1: width and opacity.
  label?: string;
}

export interface Shown {
  placement: string;         // The first field of a FEN.
  turn?: "white" | "black";
  last?: string | null;      // UCI of the last move.
  check?: string | null;     // Square of the king.
  arrows?: Arrow[];
  wrong?: { square: string; written: string; rules: string }[];
  caption?: string;          // What this board is, when it is not the game's.
}

// cm-chessboard sets style attributes, which the content security policy forbids; properties it allows.
const setAttribute = SVGElement.prototype.setAttribute;
SVGElement.prototype.setAttribute = function (name: string, value: string) {
  if (name === "style") this.style.cssText = value;
  else setAttribute.call(this, name, value);
};

// The pieces, once for all boards; cm-chessboard finds them by this id and does not load them itself.
async function loadPieces() {
  if (document.getElementById("cm-chessboard-sprite")) return;
  const holder = h("div", { id: "cm-chessboard-sprite", class: "sprite", "aria-hidden": "true" });
  document.body.append(holder);
  const text = await (await fetch(sprite)).text();
  holder.innerHTML = text.replace(/style="stroke-width:([\d.]+)"/g, 'stroke-width="$1"');
}

type Legal = { uci: string; san: string };

const reduced = matchMedia("(prefers-reduced-motion: reduce)");
const names: Record<string, string> = { p: "pawn", n: "knight", b: "bishop", r: "rook", q: "queen", k: "king" };

export function placementOf(letters: string): string {
  let text = "";
  for (let rank = 7; rank >= 0; rank--) {
    let empty = 0;
    for (let file = 0; file < 8; file++) {
      const letter = letters[rank * 8 + file]!;
      if (letter === "." || letter === "?") { empty++; continue; }
      if (empty) text += empty;
      empty = 0;
      text += letter;
    }
    if (empty) text += empty;
    if (rank) text += "/";
  }
  return text;
}

export function pieceName(letter: string): string {
  if (letter === ".") return "nothing";
  if (letter === "?") return "no piece";
  return `${letter === letter.toUpperCase() ? "white" : "black"} ${names[letter.toLowerCase()]}`;
}

export class BoardView {
  readonly element: HTMLElement;
  readonly frame = h("div", { class: "board-frame" });
  private readonly layer = svg("svg", { class: "board-layer", viewBox: "0 0 8 8", "aria-hidden": "true" });
  private readonly caption = h("div", { class: "board-caption", hidden: true });
  private readonly spoken = h("p", { class: "visually-hidden", id: "board-text" });
  private readonly board: Chessboard;
  private shown: Shown = { placement: "8/8/8/8/8/8/8/8" };
  private flipped = false;
  private legal: Legal[] = [];
  private targets: string[] = [];
  private onMove: ((uci: string) => void) | null = null;

  constructor() {
    void loadPieces();
    this.element = h("div", { class: "board" }, this.frame, this.caption, this.spoken);
    this.board = new Chessboard(this.frame, {
      position: "8/8/8/8/8/8/8/8",
      assetsUrl: "/",
      style: { cssClass: "kibitz", borderType: "none", pieces: { file: sprite, tileSize: 40 },
        animationDuration: reduced.matches ? 0 : 120 },
    });
    this.frame.append(this.layer);
    this.frame.querySelector("svg")?.setAttribute("aria-describedby", "board-text");
    this.frame.querySelector("svg")?.setAttribute("aria-label", "chess board");
    const squares = this.frame.querySelector("g.board");
    if (squares) new MutationObserver(() => this.tint()).observe(squares, { childList: true, subtree: true });
  }

  show(shown: Shown, animated = true) {
    this.shown = shown;
    void this.board.setPosition(shown.placement, animated && !reduced.matches);
    this.caption.hidden = !shown.caption;
    this.caption.textContent = shown.caption ?? "";
    this.element.classList.toggle("imagined", !!shown.caption);
    this.tint();
    this.draw();
    this.speak();
  }

  flip(flipped: boolean) {
    if (this.flipped === flipped) return;
    this.flipped = flipped;
    void this.board.setOrientation(flipped ? COLOR.black : COLOR.white, false);
    this.tint();
    this.draw();
  }

  // Moves by dragging, or by two clicks, of the side to move.
  accept(legal: Legal[], onMove: ((uci: string) => void) | null) {
    this.legal = legal;
    this.onMove = onMove;
    if (this.board.isMoveInputEnabled()) this.board.disableMoveInput();
    if (onMove && legal.length) this.board.enableMoveInput((event) => this.input(event));
    this.targets = [];
    this.draw();
  }

  private input(event: InputEvent): boolean | void {
    if (event.type === INPUT_EVENT_TYPE.moveInputStarted) {
      this.targets = this.legal.filter((move) => move.uci.startsWith(event.squareFrom)).map((move) => move.uci.slice(2, 4));
      this.draw();
      return this.targets.length > 0;
    }
    if (event.type === INPUT_EVENT_TYPE.validateMoveInput) {
      const fits = this.legal.filter((move) => move.uci.startsWith(event.squareFrom + event.squareTo));
      this.targets = [];
      this.draw();
      if (!fits.length) return false;
      if (fits.length === 1) this.onMove?.(fits[0]!.uci);
      else this.promote(fits);
      return fits.length === 1;
    }
    if (event.type === INPUT_EVENT_TYPE.moveInputCanceled) { this.targets = []; this.draw(); }
    return undefined;
  }

  // Asks which piece a pawn becomes.
  private promote(moves: Legal[]) {
    const white = moves[0]!.uci[3] === "8";
    const dialog = h("dialog", { class: "promotion", "aria-label": "promote to" });
    for (const letter of ["q", "r", "b", "n"]) {
      const move = moves.find((each) => each.uci[4] === letter);
      if (!move) continue;
      dialog.append(h("button", { "aria-label": names[letter], onclick: () => { dialog.close(); this.onMove?.(move.uci); } },
        piece(white ? letter.toUpperCase() : letter)));
    }
    dialog.addEventListener("close", () => dialog.remove());
    this.element.append(dialog);
    dialog.showModal();
  }

  // The square under a point of the window.
  squareAt(x: number, y: number): string | null {
    const box = this.frame.getBoundingClientRect();
    const column = Math.floor((x - box.left) / box.width * 8), row = Math.floor((y - box.top) / box.height * 8);
    if (column < 0 || column > 7 || row < 0 || row > 7) return null;
    return this.flipped ? "hgfedcba"[column]! + (row + 1) : "abcdefgh"[column]! + (8 - row);
  }

  private place(square: string): [number, number] {
    const file = square.charCodeAt(0) - 97, rank = square.charCodeAt(1) - 49;
    return this.flipped ? [7 - file, rank] : [file, 7 - rank];
  }

  private tint() {
    const last = this.shown.last;
    for (const rect of this.frame.querySelectorAll<SVGElement>("g.board .square")) {
      const square = rect.getAttribute("data-square") ?? "";
      const isLast = !!last && (last.slice(0, 2) === square || last.slice(2, 4) === square);
      if (rect.classList.contains("last") !== isLast) rect.classList.toggle("last", isLast);
    }
  }

  private draw() {
    const marks: SVGElement[] = [];
    if (this.shown.check) {
      const [x, y] = this.place(this.shown.check);
      marks.push(svg("circle", { cx: x + 0.5, cy: y + 0.5, r: 0.45, class: "check-ring" }));
    }
    const occupied = this.occupied();
    for (const square of new Set(this.targets)) {
      const [x, y] = this.place(square);
      marks.push(occupied.has(square)
        ? svg("circle", { cx: x + 0.5, cy: y + 0.5, r: 0.43, class: "target-ring" })
        : svg("circle", { cx: x + 0.5, cy: y + 0.5, r: 0.14, class: "target-dot" }));
    }
    for (const arrow of this.shown.arrows ?? []) marks.push(...this.arrow(arrow));
    for (const wrong of this.shown.wrong ?? []) marks.push(...this.correction(wrong));
    this.layer.replaceChildren(...marks);
  }

  private occupied(): Set<string> {
    const squares = new Set<string>();
    this.shown.placement.split("/").forEach((row, i) => {
      let file = 0;
      for (const letter of row) {
        if (letter >= "1" && letter <= "8") file += Number(letter);
        else squares.add("abcdefgh"[file++]! + (8 - i));
      }
    });
    return squares;
  }

  private arrow(arrow: Arrow): SVGElement[] {
    const [x0, y0] = this.place(arrow.uci.slice(0, 2)), [x1, y1] = this.place(arrow.uci.slice(2, 4));
    const weight = arrow.weight ?? 1;
    const dx = x1 - x0, dy = y1 - y0, length = Math.hypot(dx, dy) || 1;
    const ux = dx / length, uy = dy / length;
    const half = 0.05 + 0.055 * weight, head = 0.18 + 0.14 * weight, start = 0.28, tip = length - 0.08;
    const point = (along: number, side: number) =>
      `${(x0 + 0.5 + ux * along - uy * side).toFixed(3)} ${(y0 + 0.5 + uy * along + ux * side).toFixed(3)}`;
    const neck = Math.max(start + 0.02, tip - head * 1.25);
    const outline = `M${point(start, half)} L${point(neck, half)} L${point(neck, head)} L${point(tip, 0)} ` +
      `L${point(neck, -head)} L${point(neck, -half)} L${point(start, -half)} Z`;
    const share = arrow.kind === "share";
    const opacity = share ? 0.4 + 0.5 * weight : 0.85;
    // The likelier, the deeper: width, opacity and colour say the same.
    return [svg("path", { d: outline, class: `arrow arrow-${arrow.kind}`, opacity: opacity.toFixed(2),
      style: share ? { fill: `hsl(${200 + 18 * weight} ${45 + 25 * weight}% ${58 - 24 * weight}%)` } : {} })];
  }

  // A ring, the piece that the model wrote on the square itself, and what the rules say in its corner.
  private correction(wrong: { square: string; written: string; rules: string }): SVGElement[] {
    const [x, y] = this.place(wrong.square);
    const out: SVGElement[] = [svg("rect", { x: x + 0.04, y: y + 0.04, width: 0.92, height: 0.92, rx: 0.1, class: "wrong-ring" })];
    if (wrong.written === "?") out.push(text(x + 0.5, y + 0.62, "?", "wrong-mark"));
    out.push(svg("circle", { cx: x + 0.8, cy: y + 0.2, r: 0.21, class: "wrong-badge" }));
    if (wrong.rules === ".") out.push(svg("path", { d: `M${x + 0.72} ${y + 0.2} h0.16`, class: "wrong-none" }));
    else {
      out.push(svg("use", { href: `#${pieceId(wrong.rules)}`,
        transform: `translate(${x + 0.63} ${y + 0.03}) scale(${0.34 / 40})` }));
    }
    return out;
  }

  private speak() {
    const parts: string[] = [];
    if (this.shown.caption) parts.push(this.shown.caption + ".");
    if (this.shown.turn) parts.push(`${this.shown.turn} to move.`);
    const pieces: Record<string, string[]> = {};
    this.shown.placement.split("/").forEach((row, i) => {
      let file = 0;
      for (const letter of row) {
        if (letter >= "1" && letter <= "8") { file += Number(letter); continue; }
        (pieces[pieceName(letter)] ??= []).push("abcdefgh"[file++]! + (8 - i));
      }
    });
    for (const [name, squares] of Object.entries(pieces)) parts.push(`${name} ${squares.join(" ")}.`);
    for (const wrong of this.shown.wrong ?? []) {
      parts.push(`${wrong.square}: the model wrote ${pieceName(wrong.written)}, the rules say ${pieceName(wrong.rules)}.`);
    }
    this.spoken.textContent = parts.join(" ");
  }
}

function text(x: number, y: number, value: string, className: string): SVGElement {
  return svg("text", { x, y, class: className }, value);
}

function pieceId(letter: string): string {
  return (letter === letter.toUpperCase() ? "w" : "b") + letter.toLowerCase();
}

// A piece as a small picture.
export function piece(letter: string): SVGElement {
  return svg("svg", { viewBox: "0 0 40 40", class: "piece", "aria-hidden": "true" }, svg("use", { href: `#${pieceId(letter)}` }));
}
