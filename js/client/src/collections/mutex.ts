/** Mutex: work that must not overlap enters; it runs one after the other. Runs in the Worker. */

export class Mutex {
  #last: Promise<unknown> = Promise.resolve();
  #release: () => void = () => undefined;

  /** Run `work` once all before it has ended. Not to be called from within work. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    await this.#acquire();
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  /** From within work: let others run while `wait` does. What was known before may not hold afterwards. */
  async apart<T>(wait: () => Promise<T>): Promise<T> {
    this.#release();
    try {
      return await wait();
    } finally {
      await this.#acquire();
    }
  }

  async #acquire(): Promise<void> {
    const before = this.#last;
    let release: () => void = () => undefined;
    this.#last = new Promise<void>((resolve) => {
      release = resolve;
    });
    await before;
    this.#release = release;
  }
}
