// Win, draw and loss as three bars that add up, White's view: white's part is first.
import type { Wdl } from "./api";
import { h, percent } from "./dom";

export function wdlText(wdl: Wdl): string {
  return `White wins ${percent(wdl.win)}, draw ${percent(wdl.draw)}, Black wins ${percent(wdl.loss)}`;
}

export function wdlBar(wdl: Wdl | undefined, className = ""): HTMLElement {
  const bar = h("span", { class: `wdl ${className}`, role: "img", "aria-label": wdl ? wdlText(wdl) : "no value",
    title: wdl ? wdlText(wdl) : undefined });
  setWdl(bar, wdl);
  return bar;
}

export function setWdl(bar: HTMLElement, wdl: Wdl | undefined) {
  if (!wdl) { bar.classList.add("unknown"); bar.replaceChildren(); return; }
  bar.classList.remove("unknown");
  if (bar.children.length !== 3) {
    bar.replaceChildren(h("i", { class: "w" }), h("i", { class: "d" }), h("i", { class: "l" }));
  }
  const sum = wdl.win + wdl.draw + wdl.loss || 1;
  [wdl.win, wdl.draw, wdl.loss].forEach((share, i) => {
    (bar.children[i] as HTMLElement).style.flexGrow = String(Math.max(0.0001, share / sum));
  });
  bar.setAttribute("aria-label", wdlText(wdl));
  bar.title = wdlText(wdl);
}
