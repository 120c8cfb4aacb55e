import type { EncodingName } from '../../shared/pricing/count-tokens.ts';

export interface RepeatedText {
  readonly text: string;
  /** How often the file shows it. */
  readonly times: number;
}

/** What a vendor reads of one file, or of one document that a file may be taken for. */
export interface FileContent {
  readonly texts: readonly RepeatedText[];
  /** Pages that are looked at as pictures, beside their text. */
  readonly pages: number;
  /** Of a picture, of empty cells, or of what cannot be read here. */
  readonly tokens: number;
}

/** A file as its caller sent it, and what of its model its count depends on. */
export interface FileRequest {
  readonly filename: string;
  readonly dataUri: string;
  /** What is left of the model's context. */
  readonly maxTokens: number;
  readonly tokensPerPage: number;
  readonly tokensPerPicture: number;
  readonly tokenizer: EncodingName;
}

/** What a file counts. Its text stays where it was read: a megabyte can unpack to fifty of text. */
export interface CountedFile extends Omit<FileContent, 'texts'> {
  readonly textTokens: number;
  /** What its text may count in another vocabulary. */
  readonly textTokensElsewhere: number;
  /** In UTF-8. */
  readonly textBytes: number;
}

/** What readers take a file for. */
export type FileKind = DocumentKind | 'text';

/** Kinds whose content is known only once they are unpacked. */
export type DocumentKind = 'pdf' | 'zip' | 'xls';

export interface DocumentRequest {
  readonly kind: DocumentKind;
  readonly bytes: Buffer;
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

export type DocumentAnswer = FileContent | { readonly fault: DocumentFault };

export interface FileFault {
  readonly fault: DocumentFault | 'no_data_uri';
  /** What the file was read as, where that is known. */
  readonly kind?: FileKind;
}

export type FileAnswer = CountedFile | FileFault;

/** What the process says of a file. */
export interface FileReply {
  readonly answer: FileAnswer;
  /** What the memory of WebAssembly has grown to. */
  readonly memoryBytes: number;
}

/** The last that the process says: an error that nothing handled ends it. */
export interface FileProcessFault {
  /** `uncaught exception` or `unhandled rejection`. */
  readonly what: string;
  readonly error: Error;
}
