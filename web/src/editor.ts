// Setting up a position: pieces dragged from a tray onto the board, between squares, or off it; side to move, castling.
import { piece, pieceName, placementOf, type BoardView } from "./board";
import { fill, h } from "./dom";

const tray = ["KQRBNP", "kqrbnp"];
const start = "RNBQKBNRPPPPPPPP" + ".".repeat(32) + "pppppppprnbqkbnr";
const castlings: [string, string][] = [["K", "White short"], ["Q", "White long"], ["k", "Black short"], ["q", "Black long"]];

// Letters from a1 to h8, '.' empty.
function lettersOf(placement: string): string[] {
  const letters = Array<string>(64).fill(".");
  placement.split("/").forEach((row, i) => {
    let file = 0;
    for (const letter of row) {
      if (letter >= "1" && letter <= "8") file += Number(letter);
      else letters[(7 - i) * 8 + file++] = letter;
    }
  });
  return letters;
}

const indexOf = (square: string) => (square.charCodeAt(1) - 49) * 8 + square.charCodeAt(0) - 97;

export class Editor {
  readonly element = h("section", { class: "editor", "aria-label": "set up a position", hidden: true });
  private letters: string[] = [];
  private turn: "w" | "b" = "w";
  private castling = new Set<string>();
  private brush: string | null = null;           // The piece that a click puts down; ".": removes.
  private dragged: { letter: string; from: string | null; ghost: HTMLElement; moved: boolean } | null = null;
  private readonly cover = h("div", { class: "edit-cover" });

  constructor(private readonly board: BoardView, private readonly use: (fen: string) => Promise<void>, private readonly leave: () => void) {
    this.cover.addEventListener("pointerdown", (event) => this.pressed(event));
    this.cover.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  get open(): boolean { return !this.element.hidden; }

  show(fen: string) {
    const [placement, turn, castling] = fen.split(" ");
    this.letters = lettersOf(placement!);
    this.turn = turn === "b" ? "b" : "w";
    this.castling = new Set(castling === "-" ? [] : castling);
    this.brush = null;
    this.element.hidden = false;
    this.element.closest("main")?.classList.add("editing");
    this.board.frame.append(this.cover);
    this.redraw();
  }

  hide() {
    this.element.hidden = true;
    this.element.closest("main")?.classList.remove("editing");
    this.cover.remove();
    this.dragged?.ghost.remove();
    this.dragged = null;
  }

  private get fen(): string {
    const castling = castlings.map(([letter]) => letter).filter((letter) => this.castling.has(letter) && this.mayCastle(letter)).join("");
    return `${placementOf(this.letters.join(""))} ${this.turn} ${castling || "-"} - 0 1`;
  }

  // King and rook stand where they began.
  private mayCastle(letter: string): boolean {
    const white = letter === letter.toUpperCase(), rank = white ? "1" : "8";
    return this.at("e" + rank) === (white ? "K" : "k") && this.at((letter.toLowerCase() === "k" ? "h" : "a") + rank) === (white ? "R" : "r");
  }

  private at(square: string): string { return this.letters[indexOf(square)]!; }
  private put(square: string, letter: string) { this.letters[indexOf(square)] = letter; }

  private redraw() {
    this.board.show({ placement: placementOf(this.letters.join("")), turn: this.turn === "w" ? "white" : "black" }, false);
    const turn = (side: "w" | "b", name: string) => h("button", { "aria-pressed": String(this.turn === side),
      onclick: () => { this.turn = side; this.redraw(); } }, name);
    fill(this.element,
      ...tray.map((row) => h("div", { class: "tray" }, ...[...row].map((letter) => this.trayButton(letter)))),
      h("div", { class: "ask-row" },
        h("button", { "aria-pressed": String(this.brush === "."), class: "eraser", onclick: () => { this.brush = this.brush === "." ? null : "."; this.redraw(); } }, "Remove"),
        h("button", { id: "clear", onclick: () => { this.letters = Array<string>(64).fill("."); this.castling.clear(); this.redraw(); } }, "Clear"),
        h("button", { onclick: () => { this.letters = [...start]; this.turn = "w"; this.castling = new Set("KQkq"); this.redraw(); } }, "Start position"),
        h("span", { class: "segments", role: "group", "aria-label": "side to move" }, turn("w", "White to move"), turn("b", "Black to move"))),
      h("fieldset", { class: "castling" }, h("legend", {}, "may castle"), ...castlings.map(([letter, name]) => {
        const able = this.mayCastle(letter);
        const box = h("input", { type: "checkbox", disabled: !able, checked: able && this.castling.has(letter),
          onchange: () => { if (box.checked) this.castling.add(letter); else this.castling.delete(letter); this.redraw(); } });
        return h("label", {}, box, name);
      })),
      h("p", { class: "small" }, "Drag pieces onto the board, between squares, or off it. A click on a piece here, then on squares, puts more of it."),
      h("div", { class: "ask-row" },
        h("button", { class: "primary", id: "use-position", onclick: () => void this.use(this.fen) }, "Use position"),
        h("button", { onclick: () => this.leave() }, "Cancel"), h("code", { class: "edit-fen" }, this.fen)));
  }

  private trayButton(letter: string): HTMLElement {
    return h("button", { class: "tray-piece", "data-piece": letter, "aria-label": pieceName(letter), "aria-pressed": String(this.brush === letter),
      onpointerdown: (event: PointerEvent) => this.lift(event, letter, null),
      // A click by key; one by pointer ends in dropped().
      onclick: (event: MouseEvent) => { if (event.detail === 0) this.choose(letter); } }, piece(letter));
  }

  private choose(letter: string) { this.brush = this.brush === letter ? null : letter; this.redraw(); }

  private pressed(event: PointerEvent) {
    const square = this.board.squareAt(event.clientX, event.clientY);
    if (!square) return;
    event.preventDefault();
    if (event.button === 2) { this.put(square, "."); this.redraw(); return; }
    if (this.brush !== null) { this.put(square, this.brush); this.redraw(); return; }
    if (this.at(square) !== ".") this.lift(event, this.at(square), square);
  }

  private lift(event: PointerEvent, letter: string, from: string | null) {
    event.preventDefault();
    const size = this.board.frame.clientWidth / 8;
    const ghost = h("div", { class: "ghost", style: { width: `${size}px`, height: `${size}px` } }, piece(letter));
    document.body.append(ghost);
    this.dragged = { letter, from, ghost, moved: from !== null };
    if (from) { this.put(from, "."); this.redraw(); }
    const begun = [event.clientX, event.clientY] as const;
    const follow = (at: PointerEvent) => {
      if (Math.hypot(at.clientX - begun[0], at.clientY - begun[1]) > 4) this.dragged!.moved = true;
      ghost.style.left = `${at.clientX - size / 2}px`;
      ghost.style.top = `${at.clientY - size / 2}px`;
    };
    const stop = new AbortController();
    follow(event);
    addEventListener("pointermove", follow, { signal: stop.signal });
    for (const end of ["pointerup", "pointercancel"] as const) {
      addEventListener(end, (at) => { stop.abort(); this.dropped(at); }, { signal: stop.signal });
    }
  }

  private dropped(event: PointerEvent) {
    const dragged = this.dragged;
    if (!dragged) return;
    this.dragged = null;
    dragged.ghost.remove();
    const square = this.board.squareAt(event.clientX, event.clientY);
    if (!dragged.moved) this.choose(dragged.letter);
    else if (square) this.put(square, dragged.letter);
    this.redraw();
  }
}
