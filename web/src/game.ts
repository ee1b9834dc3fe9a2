// A game on the screen: where it began, its moves, and the ply that is shown. The server knows the rules.
import { post, type Position } from "./api";

export class Game {
  start: string | null = null;       // FEN; null: the usual start.
  moves: string[] = [];              // UCI, the whole line.
  ply = 0;                           // Moves shown.
  line: Position | null = null;      // The whole line.
  now: Position | null = null;       // Up to `ply`.

  constructor(private readonly changed: () => void) {}

  get fen(): string { return this.now?.fen ?? ""; }
  get body() { return { start: this.start, moves: this.moves.slice(0, this.ply) }; }

  async load(start: string | null, moves: string[], ply = moves.length) {
    const line = await post<Position>("position", { start, moves });
    this.start = start;
    this.moves = line.moves.map((move) => move.uci);
    this.line = line;
    await this.go(ply);
  }

  // A FEN, a PGN, or moves.
  async paste(text: string) {
    const line = await post<Position>("position", { text });
    this.start = line.start;
    this.moves = line.moves.map((move) => move.uci);
    this.line = line;
    await this.go(this.moves.length);
  }

  async go(ply: number) {
    this.ply = Math.max(0, Math.min(ply, this.moves.length));
    const asked = this.ply;
    const now = asked === this.moves.length ? this.line! : await post<Position>("position", this.body);
    if (asked !== this.ply) return;  // Another step was faster.
    this.now = now;
    this.changed();
  }

  async play(uci: string) {
    if (this.moves[this.ply] === uci) return this.go(this.ply + 1);
    await this.load(this.start, [...this.moves.slice(0, this.ply), uci]);
  }

  async takeBack(plies: number) {
    await this.load(this.start, this.moves.slice(0, Math.max(0, this.ply - plies)));
  }
}
