// The openings by ECO code and name, and a dialog to choose one.
import { get } from "./api";
import { fill, h } from "./dom";

export interface Opening { eco: string; name: string; moves: string }

const shown = 60;
let known: Promise<Opening[]> | null = null;

export function allOpenings(): Promise<Opening[]> {
  known ??= get<{ openings: Opening[] }>("openings").then(({ openings }) => openings);
  known.catch(() => { known = null; });
  return known;
}

export const openingName = (opening: Opening) => `${opening.eco} ${opening.name}`;

// Nothing when it was closed without a choice.
export async function chooseOpening(): Promise<Opening | null> {
  const openings = await allOpenings();
  return new Promise((resolve) => {
    let chosen: Opening | null = null;
    const list = h("ul", { class: "opening-list" });
    const field = h("input", { id: "opening-search", type: "search", placeholder: "ECO code, name or moves", "aria-label": "search openings", autocomplete: "off",
      oninput: () => show() });
    const dialog = h("dialog", { class: "openings", "aria-label": "openings" }, h("h2", {}, "Openings"), field, list,
      h("button", { onclick: () => dialog.close() }, "Close"));
    const show = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = openings.filter((each) => words.every((word) => `${each.eco} ${each.name} ${each.moves}`.toLowerCase().includes(word)));
      fill(list, ...fits.slice(0, shown).map((each) => h("li", {}, h("button", { onclick: () => { chosen = each; dialog.close(); } },
        h("span", { class: "number eco" }, each.eco), h("span", {}, each.name), h("span", { class: "small" }, each.moves)))),
        fits.length > shown ? h("li", { class: "small" }, `and ${fits.length - shown} more: type to find them`) : null,
        fits.length ? null : h("li", { class: "small" }, "no opening of that name"));
    };
    show();
    dialog.addEventListener("close", () => { dialog.remove(); resolve(chosen); });
    document.body.append(dialog);
    dialog.showModal();
    field.focus();
  });
}
