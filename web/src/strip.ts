// The tokens of a thought as they are written: boards as one block of 68, moves, values and signals by shape and colour,
// and a caret where the network writes.
import { get } from "./api";
import { h } from "./dom";

interface Draft { drafted: number; kept: number; wrong: number }

const boardSize = 68;
let tokenNames: Promise<{ names: string[]; moves: number }> | null = null;

export class Strip {
  readonly element = h("div", { class: "strip", tabindex: "0", role: "group", "aria-label": "tokens as written" });
  private readonly caret = h("span", { class: "caret", "aria-hidden": "true" });
  private names: string[] = [];
  private moves = 0;
  private block: HTMLElement | null = null;  // The board being written.
  private written: string[] = [];            // Its tokens.
  private waiting: (number | Draft)[] = [];  // Before the names are known, in order.

  count = 0;

  clear() {
    this.count = 0;
    this.block = null;
    this.written = [];
    this.waiting = [];
    this.element.replaceChildren();
  }

  add(tokens: number[]) {
    this.count += tokens.length;
    this.take(...tokens);
  }

  // What became of the draft of the last board.
  drafted(drafted: number, kept: number, wrong: number) { if (drafted) this.take({ drafted, kept, wrong }); }

  private take(...parts: (number | Draft)[]) {
    this.waiting.push(...parts);
    if (this.names.length) { this.show(); return; }
    tokenNames ??= get<{ names: string[]; moves: number }>("tokens");
    tokenNames.then(({ names, moves }) => { this.names = names; this.moves = moves; this.show(); }, () => { tokenNames = null; });
  }

  private note({ drafted, kept, wrong }: Draft) {
    const blocks = this.element.querySelectorAll<HTMLElement>(".board-token");
    const block = blocks[blocks.length - 1];
    if (!block) return;
    block.classList.toggle("cut", kept < drafted);
    block.append(h("span", { class: "kept" }, ` ${kept} of ${drafted} drafted kept`), wrong ? h("span", { class: "wrong-count" }, ` ≠${wrong}`) : "");
  }

  writing(on: boolean) {
    if (on) this.element.append(this.caret);
    else this.caret.remove();
  }

  private show() {
    const end = this.caret.isConnected ? this.caret : null;
    for (const each of this.waiting) {
      if (typeof each === "number") this.element.insertBefore(this.part(each), end);
      else this.note(each);
    }
    this.waiting = [];
    if (this.element.scrollHeight > this.element.clientHeight) this.element.scrollTop = this.element.scrollHeight;
  }

  // A new element, or the block that grew; inserting that again leaves it the last.
  private part(token: number): HTMLElement {
    const name = this.names[token] ?? "?";
    if (name === "start_pos") {
      this.written = [];
      this.block = h("span", { class: "token board-token" }, h("span", {}));
    }
    const block = this.block;
    if (block) {
      this.written.push(name);
      const done = this.written.length === boardSize;
      block.firstElementChild!.textContent = done ? `board · ${boardSize}` : `board · ${this.written.length}…`;
      block.title = this.written.join(" ");
      if (done) this.block = null;
      return block;
    }
    const kind = token < this.moves ? "move-token" : name.endsWith("_value") ? "value-token" : "signal-token";
    return h("span", { class: `token ${kind}` }, name);
  }
}
