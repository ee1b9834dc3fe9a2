// Arena: two players against each other.
import { h } from "../dom";
import { emptyState, type Page } from "../shell";

export const page: Page = {
  mount(root) {
    root.append(emptyState("The arena is not in this build", h("span", {}, "Play against a player on ", h("a", { href: "/think" }, "Think"), ".")));
  },
};
