// The cards of models: the part of Markdown that they use, as elements. Text stays text: nothing becomes HTML.
import { h } from "./dom";

type Child = Node | string;

export function markdown(text: string): HTMLElement {
  const out = h("div", { class: "markdown" });
  const lines = text.split(/\r?\n/);
  for (let i = 0; i < lines.length;) {
    const line = lines[i]!;
    const rest = (fits: (line: string) => boolean) => {
      const from = i;
      while (i < lines.length && fits(lines[i]!)) i++;
      return lines.slice(from, i);
    };
    if (!line.trim()) { i++; continue; }
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (heading) { out.append(h(heading[1]!.length === 1 ? "h3" : "h4", {}, ...inline(heading[2]!))); i++; continue; }
    if (line.startsWith("```")) {
      i++;
      const code = rest((each) => !each.startsWith("```"));
      i++;
      out.append(h("pre", { tabindex: "0" }, code.join("\n")));
    } else if (line.startsWith("|")) {
      out.append(table(rest((each) => each.startsWith("|"))));
    } else if (/^\s*([-*]|\d+\.)\s/.test(line)) {
      const items: string[] = [];
      for (const each of rest((next) => !!next.trim() && !next.startsWith("#"))) {
        if (/^\s*([-*]|\d+\.)\s/.test(each)) items.push(each.replace(/^\s*([-*]|\d+\.)\s+/, ""));
        else items[items.length - 1] += ` ${each.trim()}`;
      }
      out.append(h(/^\s*\d/.test(line) ? "ol" : "ul", {}, ...items.map((item) => h("li", {}, ...inline(item)))));
    } else {
      out.append(h("p", {}, ...inline(rest((each) => !!each.trim() && !/^(#|\||```)/.test(each)).join(" "))));
    }
  }
  return out;
}

function table(lines: string[]): HTMLElement {
  const rows = lines.map((line) => line.replace(/^\||\|\s*$/g, "").split("|").map((cell) => cell.trim()));
  const ruled = rows.length > 1 && rows[1]!.every((cell) => /^:?-+:?$/.test(cell));
  const body = ruled ? rows.slice(2) : rows;
  return h("div", { class: "table-frame", tabindex: "0", role: "group", "aria-label": "table" }, h("table", {},
    ruled ? h("thead", {}, h("tr", {}, ...rows[0]!.map((cell) => h("th", { scope: "col" }, ...inline(cell))))) : null,
    h("tbody", {}, ...body.map((row) => h("tr", {}, ...row.map((cell) => h("td", {}, ...inline(cell))))))));
}

// `code`, **bold**, *emphasis*, and links as their text: the page asks no other server.
function inline(text: string): Child[] {
  const parts: Child[] = [];
  let last = 0;
  for (const match of text.matchAll(/`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\(([^)]*)\)/g)) {
    parts.push(text.slice(last, match.index));
    last = match.index + match[0].length;
    if (match[1]) parts.push(h("code", {}, match[1]));
    else if (match[2]) parts.push(h("strong", {}, match[2]));
    else if (match[3]) parts.push(h("em", {}, match[3]));
    else parts.push(h("span", { title: match[5] }, match[4]!));
  }
  parts.push(text.slice(last));
  return parts;
}
