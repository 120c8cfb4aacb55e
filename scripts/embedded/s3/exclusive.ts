/** Runs changes one after another. */
export class Exclusive {
  #lastChange: Promise<unknown> = Promise.resolve();

  async run<Result>(change: () => Promise<Result>): Promise<Result> {
    const result = this.#lastChange.then(change);
    // The next change waits for this one to finish, even if it fails. The caller gets the error.
    this.#lastChange = result.catch(() => undefined);
    return await result;
  }
}
