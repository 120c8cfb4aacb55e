import type { CatalogModel } from '../../catalog/catalog-schema.ts';
import { type AppError, invalidField } from '../../contract/errors.ts';
import { writeReason } from '../../contract/reason-texts.ts';
import { countTokensAsync, type CountingTurn } from '../../catalog/count-tokens.ts';
import { estimateInOtherVocabulariesAsync } from './other-vocabularies.ts';
import { countLookUpChars, type CountedTexts } from './counted-texts.ts';

/**
 * How many times as many tokens as in ours a text may take in another vocabulary. Vocabularies agree on English; Llama 3,
 * Mistral and Qwen need 1.07, 1.32 and 1.65 times as many for Russian, and some twice as many for Hebrew and Hindi.
 */
const maxRatio = { ascii: 1, other: 2 };

export interface PromptPart {
  /** Tokens according to our own tokenizer. */
  readonly tokens: number;
  readonly textBytes: number;
  /** Maximum number of tokens in other vendors' vocabularies; equals `tokens` for content that is not text. */
  readonly tokensInOtherVocabularies: number;
  /** Tokens of the context that it may take in another vocabulary; equals `tokens` for content that is not text. */
  readonly roomTokens: number;
}

/** How the texts of one request are tokenized. */
export interface Counting {
  readonly turn: CountingTurn;
  readonly countedTexts: CountedTexts;
}

const emptyPart: PromptPart = { tokens: 0, textBytes: 0, tokensInOtherVocabularies: 0, roomTokens: 0 };

export class PromptCounter {
  readonly #model: CatalogModel;
  readonly #turn: CountingTurn;
  readonly #countedTexts: CountedTexts;
  #tokens = 0;
  #tokensInOtherVocabularies = 0;
  #textBytes = 0;
  #roomTokens = 0;
  #reservesContext = false;

  constructor(model: CatalogModel, { turn, countedTexts }: Counting) {
    this.#model = model;
    this.#turn = turn;
    this.#countedTexts = countedTexts;
  }

  get tokens(): number {
    return this.#tokens;
  }

  /** Tokens to reserve money for. More than `tokens` if the vendor's vocabulary differs from ours and may need more. */
  get reservedTokens(): number {
    if (this.#reservesContext) return this.#model.context;
    const max = Math.max(this.#tokens, Math.ceil(this.#tokensInOtherVocabularies));
    return Math.min(max, this.#model.context);
  }

  /** Tokens of the context that the prompt may take in the vendor's vocabulary. */
  get roomTokens(): number {
    return this.#roomTokens;
  }

  /** Bytes of all texts added. */
  get textBytes(): number {
    return this.#textBytes;
  }

  /** @throws AppError `context_length_exceeded` if our own count exceeds the model's context */
  add({ tokens, textBytes, tokensInOtherVocabularies, roomTokens }: PromptPart): void {
    this.#tokens += tokens;
    this.#textBytes += textBytes;
    this.#tokensInOtherVocabularies += this.#model.hasTokenizer ? tokens : tokensInOtherVocabularies;
    this.#roomTokens += roomTokens;
    if (this.#tokens > this.#model.context) throw tooLong(this.#model);
  }

  /** Reserves the model's whole context, because the prompt has content whose tokens are unknown. */
  reserveContext(): void {
    this.#reservesContext = true;
  }

  /**
   * Adds tokens of content that is not text.
   * @throws AppError `context_length_exceeded` beyond the model's context
   */
  addTokens(tokens: number): void {
    this.add({ tokens, textBytes: 0, tokensInOtherVocabularies: tokens, roomTokens: tokens });
  }

  /** @throws AppError `context_length_exceeded` beyond the model's context */
  async addText(text: string): Promise<void> {
    // Tokenizing stops where the context ends, so a prompt that far exceeds it takes no longer than one that just
    // exceeds it.
    const part = await this.countUpTo(text, this.#model.context - this.#tokens);
    if (part === null) throw tooLong(this.#model);
    this.add(part);
  }

  /** Counts the tokens of a text without adding it. @returns null if our own count exceeds the limit */
  async countUpTo(text: string, limit: number): Promise<PromptPart | null> {
    if (text === '') return emptyPart;
    const { tokenizer, hasTokenizer } = this.#model;
    const vocabulary = hasTokenizer ? tokenizer : `${tokenizer} and others`;
    const lookUpChars = countLookUpChars(text.length);
    if (this.#turn.mustWaitFor(lookUpChars)) await this.#turn.next();
    const key = this.#countedTexts.keyOf(this.#turn.accountId, vocabulary, text);
    const known = key === null ? null : this.#countedTexts.find(key);
    if (known !== null) {
      if (this.#turn.spend(lookUpChars)) await this.#turn.next();
      return known.tokens > limit ? null : known;
    }
    const part = await this.#tokenize(text, limit);
    if (key !== null && part !== null) this.#countedTexts.add(key, part);
    return part;
  }

  async #tokenize(text: string, limit: number): Promise<PromptPart | null> {
    const { tokenizer, hasTokenizer } = this.#model;
    const tokens = await countTokensAsync(text, { limit, turn: this.#turn, encoding: tokenizer });
    if (tokens === null) return null;
    const textBytes = Buffer.byteLength(text);
    if (hasTokenizer) return { tokens, textBytes, tokensInOtherVocabularies: tokens, roomTokens: tokens };
    const tokensInOtherVocabularies = await estimateInOtherVocabulariesAsync(text, 'chat', this.#turn);
    // Letters beyond ASCII take two bytes or more.
    const share = Math.min(1, textBytes / text.length - 1);
    const roomTokens = Math.max(
      tokensInOtherVocabularies,
      tokens * (maxRatio.ascii + (maxRatio.other - maxRatio.ascii) * share),
    );
    return { tokens, textBytes, tokensInOtherVocabularies, roomTokens };
  }
}

function tooLong({ context }: CatalogModel): AppError {
  const { en, ru } = writeReason('contextTooSmall', { context });
  return invalidField(['body', 'messages'], en, { code: 'context_length_exceeded', msgRu: ru });
}
