import "./style.css";
import { start, type Page } from "./shell";

// Each page is a file of its own, loaded when it is opened.
start(async (path): Promise<Page> => {
  switch (path) {
    case "/arena": return (await import("./pages/arena")).page;
    case "/data": return (await import("./pages/data")).page;
    case "/2048": return (await import("./pages/twenty48")).page;
    case "/training": return (await import("./pages/training")).page;
    case "/models": return (await import("./pages/models")).page;
    default: return (await import("./pages/think")).page;
  }
});
