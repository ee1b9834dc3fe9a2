import { defineConfig } from "vite";

export default defineConfig({
  base: "/",
  // Nothing inline: the content security policy allows files of this server alone.
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false }, sourcemap: false },
});
