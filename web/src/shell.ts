// What all pages share: the bar, addresses, keys, light and dark, messages.
import { fill, h } from "./dom";
import { ApiError } from "./api";

export interface Page {
  // Builds the page; returns what to do when it is left.
  mount(root: HTMLElement, params: URLSearchParams): (() => void) | void;
  // A key that no field wanted; true when it was used.
  key?(key: string): boolean;
  keys?: [string, string][];
}

export const pages = [
  { path: "/think", name: "Think", icon: "M4 11a8 8 0 1 1 4 7l-4 2 1.300-4A8 8 0 0 1 4 11z" },
  { path: "/arena", name: "Arena", icon: "M5 4l7 8 7-8M5 20l7-8 7 8M3 12h3M18 12h3" },
  { path: "/data", name: "Data", icon: "M4 20V10M10 20V4M16 20v-7M22 20H2" },
  { path: "/2048", name: "2048", icon: "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z" },
  { path: "/training", name: "Training", icon: "M3 5v15h18M6 15c3 0 3-8 6-8 2 0 2 5 4 5 2 0 2-3 4-3" },
  { path: "/models", name: "Models", icon: "M12 3l8 4.500v9L12 21l-8-4.500v-9zM12 12l8-4.500M12 12v9M12 12L4 7.500" },
];

const globalKeys: [string, string][] = [
  ["1 – 6", "the six pages"], ["?", "this list"],
];

let leave: (() => void) | void;
let current: Page | null = null;
const main = h("main", { id: "page", tabindex: "-1" });
const toasts = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
const links = new Map<string, HTMLAnchorElement>();
let load: (path: string) => Promise<Page>;

export function navigate(url: string, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", url);
  void open();
}

// The address keeps the page's state, without a step in the history for each change.
export function remember(params: Record<string, string | number | null | undefined>) {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") search.set(key, String(value));
  }
  const text = search.toString();
  history.replaceState(null, "", location.pathname + (text ? `?${text}` : ""));
}

export function title(text: string) { document.title = text ? `${text} · Kibitz` : "Kibitz"; }

export function announce(text: string) { toasts.setAttribute("data-said", text); spoken.textContent = text; }
const spoken = h("p", { class: "visually-hidden", "aria-live": "polite" });

// A message that leaves by itself; an error stays until it is closed, with the raw message one click away.
export function tell(text: string) {
  const toast = h("div", { class: "toast" }, text);
  toasts.append(toast);
  setTimeout(() => toast.remove(), 2500);
}

export function fail(error: unknown) {
  if ((error as Error)?.name === "AbortError") return;
  toasts.replaceChildren(errorBox(error, () => toasts.replaceChildren()));
}

export function errorBox(error: unknown, close?: () => void): HTMLElement {
  const known = error instanceof ApiError;
  const text = error instanceof Error ? error.message : String(error);
  const hint = known ? error.hint : "";
  return h("div", { class: "toast error", role: "alert" },
    h("span", { class: "error-mark", "aria-hidden": "true" }, "!"),
    h("div", {}, h("strong", {}, short(text)), hint && h("div", { class: "small" }, hint),
      text.length > 160 && h("details", {}, h("summary", {}, "whole message"), h("pre", {}, text))),
    close && h("button", { class: "quiet", "aria-label": "close", onclick: close }, "✕"));
}

const short = (text: string) => (text.length > 160 ? text.slice(0, 157) + "…" : text);

export function emptyState(headline: string, ...lines: (Node | string)[]): HTMLElement {
  return h("div", { class: "empty" }, h("h2", {}, headline), ...lines.map((line) => h("p", {}, line)));
}

export function start(loader: (path: string) => Promise<Page>) {
  load = loader;
  const nav = h("nav", { "aria-label": "pages" }, ...pages.map((page, i) => {
    const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    icon.setAttribute("viewBox", "0 0 24 24");
    icon.setAttribute("class", "nav-icon");
    icon.setAttribute("aria-hidden", "true");
    icon.innerHTML = `<path d="${page.icon}"/>`;
    const link = h("a", { href: page.path, title: `${page.name} (${i + 1})` }, icon, h("span", {}, page.name));
    links.set(page.path, link);
    return link;
  }));
  const theme = h("button", { class: "quiet theme", onclick: switchTheme, "aria-label": "light or dark", title: "light or dark" });
  theme.innerHTML = `<svg viewBox="0 0 24 24" class="nav-icon" aria-hidden="true"><path d="M12 3a9 9 0 1 0 9 9 7 7 0 0 1-9-9z"/></svg>`;
  const help = h("button", { class: "quiet", onclick: showKeys, "aria-label": "keys", title: "keys (?)" }, "?");
  document.body.append(
    h("a", { class: "skip", href: "#page" }, "to the page"),
    h("header", { class: "bar" },
      h("a", { class: "brand", href: "/think" }, h("span", { class: "brand-mark", "aria-hidden": "true" }, "K"), "Kibitz"),
      nav, h("div", { class: "bar-end" }, help, theme)),
    main, toasts, spoken);
  document.addEventListener("click", follow);
  document.addEventListener("keydown", onKey);
  addEventListener("popstate", () => void open());
  void open();
}

function follow(event: MouseEvent) {
  const link = (event.target as Element).closest?.("a[href^='/']") as HTMLAnchorElement | null;
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0 || link.hasAttribute("download")) return;
  event.preventDefault();
  navigate(link.getAttribute("href")!);
}

async function open() {
  leave?.();
  leave = undefined;
  const path = location.pathname === "/" ? "/think" : location.pathname;
  for (const [address, link] of links) {
    if (address === path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  title(pages.find((page) => page.path === path)?.name ?? "");
  try {
    current = await load(path);
    fill(main);
    main.className = `page-${path.slice(1)}`;
    leave = current.mount(main, new URLSearchParams(location.search));
  } catch (error) {
    fill(main, errorBox(error));
  }
}

function onKey(event: KeyboardEvent) {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const field = target.closest("input:not([type=range]):not([type=checkbox]), textarea, select");
  if (field) {
    if (event.key === "Escape") (field as HTMLElement).blur();
    return;
  }
  // A button in focus takes the space bar and Enter; a slider or a chip the arrows.
  if ((event.key === " " || event.key === "Enter") && target.closest("button, a, summary, [tabindex='0']")) return;
  if (event.key.startsWith("Arrow") && target.closest("input[type=range]")) return;
  if (current?.key?.(event.key)) { event.preventDefault(); return; }
  if (event.key >= "1" && event.key <= "6") navigate(pages[Number(event.key) - 1]!.path);
  else if (event.key === "?") showKeys();
  else return;
  event.preventDefault();
}

function showKeys() {
  const rows = [...(current?.keys ?? []), ...globalKeys];
  const dialog = h("dialog", { class: "keys", "aria-label": "keys" },
    h("h2", {}, "Keys"),
    h("dl", {}, ...rows.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    h("button", { onclick: () => dialog.close() }, "Close"));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function switchTheme() {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", dark ? "light" : "dark");
  dispatchEvent(new Event("themechange"));
}

const saved = localStorage.getItem("theme");
if (saved) document.documentElement.dataset.theme = saved;
