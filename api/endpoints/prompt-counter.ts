import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { type AppError, invalidField } from '../../shared/contract/errors.ts';
import { countTokensAsync, type CountingTurn } from '../../shared/pricing/count-tokens.ts';

/** Adds up the tokens of one prompt. */
export class PromptCounter {
  readonly #model: CatalogModel;
  readonly #turn: CountingTurn;
  #tokens = 0;
  #textBytes = 0;

  constructor(model: CatalogModel, turn: CountingTurn) {
    this.#model = model;
    this.#turn = turn;
  }

  get tokens(): number {
    return this.#tokens;
  }

  /** Of all texts that were added. */
  get textBytes(): number {
    return this.#textBytes;
  }

  /**
   * @param textBytes of the text that has so many tokens, if it is one
   * @throws AppError `content_too_long` beyond the model's context
   */
  add(tokens: number, textBytes = 0): void {
    this.#tokens += tokens;
    this.#textBytes += textBytes;
    if (this.#tokens > this.#model.context) throw tooLong(this.#model);
  }

  /** @throws AppError `content_too_long` beyond the model's context */
  async addText(text: string): Promise<void> {
    // Counting stops at what is left of the context: a prompt far beyond it costs no more than one just beyond.
    const tokens = await this.countUpTo(text, this.#model.context - this.#tokens);
    if (tokens === null) throw tooLong(this.#model);
    this.add(tokens, Buffer.byteLength(text));
  }

  /** Counts without adding. @returns null above the limit */
  async countUpTo(text: string, limit: number): Promise<number | null> {
    if (text === '') return 0;
    return await countTokensAsync(text, { limit, turn: this.#turn, encoding: this.#model.tokenizer });
  }
}

function tooLong({ context }: CatalogModel): AppError {
  const msg =
    `The messages are longer than the model's context of ${context} tokens; tools, files and pictures count as well. ` +
    'Shorten them, or choose a model with a larger context.';
  return invalidField(['body', 'messages'], msg, { code: 'content_too_long' });
}
