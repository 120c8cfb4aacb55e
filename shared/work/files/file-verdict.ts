/** What is wrong with a line of a batch's input. */
export type LineFaultCode =
  | 'invalid_json_line'
  | 'missing_custom_id'
  | 'duplicate_custom_id'
  | 'too_many_tasks'
  | 'empty_file';

export interface LineFault {
  readonly code: LineFaultCode;
  /** Counted from 1; null for a fault of the whole file. */
  readonly line: number | null;
  readonly message: string;
  /** The field of the line. */
  readonly param: string | null;
}

/** The lines with the same model, size and quality, summed up for estimates of their cost. */
export interface LineGroup {
  /** As written in the lines; null for lines without one. */
  readonly model: string | null;
  /** Of images. */
  readonly size: string | null;
  readonly quality: string | null;
  readonly lines: number;
  /** Characters of the texts that a model reads. */
  readonly characters: number;
  /** Tokens of these texts. */
  readonly tokens: number;
  /** Inputs of embeddings: the lengths of their arrays, otherwise one a line. */
  readonly inputs: number;
  /** Messages of chats. Files that an earlier release stored lack it. */
  readonly messages?: number;
  /** The sum of `n`. */
  readonly choices: number;
  /** Output tokens at most, of all choices of the lines with a limit. */
  readonly limitedTokens: number;
  /** The sum of `n` over the lines without a limit of their output. */
  readonly unlimitedChoices: number;
}

/** The result of checking a file that a batch can read. It is kept with the file. */
export interface FileVerdict {
  /** Lines that are not blank. */
  readonly lines: number;
  /** The first faults, in the order of their lines. A batch cannot run a file with faults. */
  readonly faults: readonly LineFault[];
  /** The different `url`s of the lines, as many as are kept, with the first line that has it. */
  readonly urls: readonly { readonly url: string; readonly line: number }[];
  readonly groups: readonly LineGroup[];
  /** The lines beyond the groups that are kept. Null if there are none. */
  readonly other: LineGroup | null;
}
