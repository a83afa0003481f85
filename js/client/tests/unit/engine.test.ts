/** The engine in this thread: how calls end when its module does. */
import { afterEach, expect, it, vi } from "vitest";
import { Engine } from "../../src/engine.js";
import { WorkerLost } from "../../src/errors.js";

afterEach(() => vi.unstubAllGlobals());

it("rejects what waits when the module ends in a turn that no call awaits", async () => {
  const page = new EventTarget(); // what a browser's global is
  vi.stubGlobal("addEventListener", page.addEventListener.bind(page));
  const fails = (error: Error) => page.dispatchEvent(Object.assign(new Event("error"), { error }));
  const engine = new Engine({ worker: false });
  const calls = [engine.about(), engine.about()];
  fails(new TypeError("of the page's own"));
  fails(new WebAssembly.RuntimeError("unreachable"));
  for (const call of calls) await expect(call).rejects.toThrow(/has ended: unreachable/);
  await expect(engine.about()).rejects.toThrow(WorkerLost);
  engine.stop();
});
