/** Fields of a body whose texts a model reads. */
export const textFields = ['messages', 'input', 'prompt'] as const;
export type TextField = (typeof textFields)[number];

export const isTextField = (name: string): name is TextField =>
  (textFields as readonly string[]).includes(name);

/** What a field of a body holds. */
export class FieldTexts {
  /** Texts that are not counted yet. */
  texts: string[] = [];
  characters = 0;
  /** Characters whose tokens are counted. */
  countedCharacters = 0;
  /** Tokens of these characters. */
  countedTokens = 0;
  /** Numbers that stand for tokens. */
  tokenIds = 0;
  /** Elements of an array; null if it is none. */
  elements: number | null = null;
  /** Whether the array consists of tokens, so that it is one input. */
  isTokenArray = false;
}

/** What a line's `body` says about its cost. */
export interface BodyFacts {
  /** Values as sent; undefined if there are none. */
  model?: unknown;
  size?: unknown;
  quality?: unknown;
  n?: unknown;
  max_tokens?: unknown;
  max_completion_tokens?: unknown;
  readonly fields: Partial<Record<TextField, FieldTexts>>;
}

export const bodyValues = ['model', 'size', 'quality', 'n', 'max_tokens', 'max_completion_tokens'] as const;
export type BodyValue = (typeof bodyValues)[number];

export const isBodyValue = (name: string): name is BodyValue =>
  (bodyValues as readonly string[]).includes(name);

/** What is known of a line, without its contents. */
export interface LineFacts {
  /** Values as sent; undefined if there are none. */
  custom_id?: unknown;
  method?: unknown;
  url?: unknown;
  /** Null if it is no object, undefined if there is none. */
  body?: BodyFacts | null;
}

/** Data URIs are images and files, whose characters are no text. */
export const isDataUri = (text: string): boolean => text.startsWith('data:');
