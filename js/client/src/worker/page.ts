/** The Worker of a page: its port is that of the page that made it. */

import { type Engine, serve } from "./serve.js";

const scope = globalThis as unknown as {
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
  addEventListener(type: "message", take: (event: MessageEvent) => void): void;
};

/** Answer the page's calls with this engine. */
export function run(engine: Engine): void {
  scope.addEventListener("message", ({ data }) => {
    if (data.type === "live")
      // Held as long as this Worker lives, so that the page learns when it does not any more.
      void navigator.locks.request(data.name, () => {
        scope.postMessage({ type: "alive", name: data.name }, []);
        return new Promise(() => undefined);
      });
  });
  serve(
    {
      post: (message, transfer) => scope.postMessage(message, transfer),
      listen: (take) =>
        scope.addEventListener("message", (event) => event.data.type !== "live" && take(event.data)),
    },
    { ...engine, fetch: (url, options) => fetch(url, options) },
  );
}
