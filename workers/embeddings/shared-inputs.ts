import { PendingInput, type PendingRequest } from './embedding-work.ts';

/**
 * The inputs of one model that wait for a call or are part of one. Requests of one account for the same text share an
 * input, so that it is embedded once.
 */
export class SharedInputs {
  /** By account, dimensions, billing mode and class, then by text. */
  readonly #inputs = new Map<string, Map<string, PendingInput>>();

  /**
   * Claims an input for a request.
   * @returns the input if it is new and must be queued; null if it is shared with an earlier request
   */
  claim(request: PendingRequest, index: number): PendingInput | null {
    const { inputs, inputTokens } = request.task;
    const text = inputs[index]!;
    const name = request.sharingKey;
    let byText = this.#inputs.get(name);
    if (byText === undefined) {
      byText = new Map();
      this.#inputs.set(name, byText);
    }
    const pendingInput = byText.get(text);
    // An input that nobody waits for is not retried if its call fails, so it cannot be shared.
    if (pendingInput?.isNeeded === true) {
      pendingInput.claim(request, index);
      return null;
    }
    const input = new PendingInput(request, text, inputTokens[index] ?? 0);
    byText.set(text, input);
    input.claim(request, index);
    return input;
  }

  /** Stops sharing an input that is done or abandoned. */
  remove(input: PendingInput): void {
    const name = input.group.sharingKey;
    const byText = this.#inputs.get(name);
    if (byText?.get(input.text) !== input) return;
    byText.delete(input.text);
    if (byText.size === 0) this.#inputs.delete(name);
  }
}
