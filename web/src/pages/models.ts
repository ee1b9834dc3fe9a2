// Models: what is in the folders, with its card.
import { get, type Model } from "../api";
import { ago, bytes, count, fill, h } from "../dom";
import { markdown } from "../markdown";
import { emptyState, fail, type Page } from "../shell";

const words: Record<string, string> = {
  decoder: "thinks out loud", policy: "policy", lc0: "lc0 network", "2048": "plays 2048",
};

function buttons(model: Model): HTMLElement {
  const name = encodeURIComponent(model.kind + ":" + model.id.split("/").map(encodeURIComponent).join("/"));
  if (model.kind === "2048") return h("div", { class: "ask-row" }, link(`/2048?player=${encodeURIComponent(model.id)}`, "Watch"));
  if (model.kind === "decoder") {
    return h("div", { class: "ask-row" }, link(`/think?player=${name}%3Fthink%3D1&think=1`, "Think"),
      link(`/think?player=${name}%3Fthink%3D1&side=white`, "Play"));
  }
  return h("div", { class: "ask-row" }, link(`/think?player=${name}`, "Look"), link(`/think?player=${name}&side=white`, "Play"));
}

function link(href: string, text: string): HTMLElement {
  return h("a", { href, class: "button" }, text);
}

function rating(model: Model): string {
  const best = model.ratings?.points[0];
  return best ? `${Math.round(best.elo)} Elo against ${model.ratings!.anchor}` : "not measured";
}

// The configuration as a table: a row each number, nested ones by their path.
function shape(config: unknown): HTMLElement {
  const rows: [string, string][] = [];
  const walk = (value: unknown, path: string) => {
    if (value && typeof value === "object" && !Array.isArray(value)) for (const [key, each] of Object.entries(value)) walk(each, path ? `${path}.${key}` : key);
    else rows.push([path, Array.isArray(value) ? value.join(", ") : String(value)]);
  };
  walk(config, "");
  return h("details", { class: "shape" }, h("summary", {}, "Configuration"),
    h("table", {}, h("tbody", {}, ...rows.map(([key, value]) => h("tr", {}, h("th", { scope: "row" }, key), h("td", {}, value))))));
}

function card(model: Model): HTMLElement {
  const details = h("details", {}, h("summary", {}, "Card and shape"), h("div", { class: "card-text", tabindex: "0", role: "group", "aria-label": `card of ${model.id}` }, "…"));
  details.addEventListener("toggle", () => {
    if (!details.open) return;
    get<Model>(`models/${model.id.split("/").map(encodeURIComponent).join("/")}`).then((whole) => {
      fill(details.querySelector("div")!, whole.card ? markdown(whole.card) : h("p", { class: "small" }, "It has no card."), shape(whole.config));
    }, fail);
  }, { once: true });
  return h("article", { class: "card model" },
    h("div", {}, h("h2", {}, model.id), h("span", { class: "kind" }, words[model.kind] ?? "cannot be read")),
    h("dl", {}, h("dt", {}, "parameters"), h("dd", {}, count(model.parameters)), h("dt", {}, "size"), h("dd", {}, bytes(model.bytes)),
      h("dt", {}, "rating"), h("dd", {}, rating(model)),
      h("dt", {}, model.run ? "from the run" : "changed"), h("dd", {}, model.run ?? ago(Date.now() / 1000 - model.changed))),
    model.problem ? h("p", { class: "small" }, model.problem) : buttons(model), details);
}

export const page: Page = {
  mount(root) {
    const list = h("div", { class: "cards" });
    root.append(h("h1", { class: "visually-hidden" }, "Models"), list);
    get<{ models: Model[]; folders: string[] }>("models").then(({ models, folders }) => {
      if (models.length) fill(list, ...models.map(card));
      else fill(root, emptyState("No models found", h("span", {}, "Looked in ", folders.join(", ") || "no folder", ". Give one: ",
        h("code", {}, "kibitz serve --models DIR"))));
    }, fail);
  },
};
