// node build.mjs OUT: builds the page into OUT/dist and writes OUT/page_files.cc, which puts its files
// into the program, each plain and gzipped.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";

const out = path.resolve(process.argv[2]);
const dist = path.join(out, "dist");
const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".json": "application/json",
  ".txt": "text/plain; charset=utf-8",
};

// Installs what package.json names where it is missing or of another version.
const wanted = Object.entries(JSON.parse(readFileSync("package.json", "utf8")).devDependencies);
const installed = ([name, version]) => existsSync(`node_modules/${name}/package.json`) &&
  JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")).version === version;
if (!wanted.every(installed)) {
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { stdio: "inherit" });
}
const { build } = await import("vite");
await build({ logLevel: "warn", build: { outDir: dist, emptyOutDir: true } });

const files = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name))
  .sort();
const packed = path.join(out, "gzipped");
mkdirSync(packed, { recursive: true });

let blobs = "";
let rows = "";
files.forEach((file, i) => {
  const name = "/" + path.relative(dist, file).split(path.sep).join("/");
  const type = types[path.extname(file)];
  if (!type) throw new Error(`${name}: a kind of file that build.mjs does not know`);
  const gzipped = path.join(packed, String(i));
  writeFileSync(gzipped, gzipSync(readFileSync(file), { level: 9 }));
  for (const [kind, place] of [["plain", file], ["gzip", gzipped]]) {
    const symbol = `kibitz_page_${i}_${kind}`;
    blobs += `asm(".section .rodata\\n.global ${symbol}\\n${symbol}:\\n.incbin \\"${place}\\"\\n` +
      `.global ${symbol}_end\\n${symbol}_end:\\n.byte 0\\n.previous\\n");\n` +
      `extern "C" const char ${symbol}[], ${symbol}_end[];\n`;
  }
  const view = (kind) => `View(kibitz_page_${i}_${kind}, kibitz_page_${i}_${kind}_end)`;
  rows += `    {"${name}", "${type}", ${view("plain")}, ${view("gzip")}},\n`;
});

writeFileSync(path.join(out, "page_files.cc"), `// Written by web/build.mjs.
#include <array>

#include "serve/page.h"

${blobs}
namespace kibitz::serve {
namespace {

std::string_view View(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

std::span<const PageFile> PageFiles() {
  static const std::array<PageFile, ${files.length}> files = {{
${rows}  }};
  return files;
}

}  // namespace kibitz::serve
`);
