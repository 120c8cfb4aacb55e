export interface RepeatedText {
  readonly text: string;
  /** How often the file shows it. */
  readonly times: number;
}

/** What a vendor reads of one file. */
export interface FileContent {
  readonly texts: readonly RepeatedText[];
  /** Pages that are looked at as pictures, beside their text. */
  readonly pages: number;
  /** Of a picture, of empty cells, or of what cannot be read here. */
  readonly tokens: number;
}

/** Files that are read on a thread of their own, because what they unpack to is known only once they are read. */
export type DocumentKind = 'pdf' | 'zip' | 'xls';

export interface DocumentRequest {
  readonly kind: DocumentKind;
  readonly bytes: Uint8Array;
  /** Longer texts, and more pages, are beyond the model's context in any case. */
  readonly maxCharacters: number;
  readonly maxPages: number;
}

export type DocumentFault =
  /** Damaged, or not of this kind. */
  | 'unreadable'
  | 'protected'
  /** More text or pages than were asked for. */
  | 'too_long'
  /** It takes more time or memory than one file may. */
  | 'too_large';

/** What the thread says. */
export interface DocumentReply {
  readonly answer: DocumentAnswer;
  /** What the thread holds by now. */
  readonly memoryBytes: number;
}

export type DocumentAnswer = FileContent | { readonly fault: DocumentFault };
