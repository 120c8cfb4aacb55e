import type { EncodingName } from '../../catalog/count-tokens.ts';

/**
 * The content that a vendor reads from a file. Covers one interpretation of the file, or all possible ones together.
 */
export interface FileContent {
  readonly texts: readonly string[];
  /** Pages that are read as images in addition to their text. */
  readonly pages: number;
  /** Tokens of an image that is sent as a file. */
  readonly imageTokens: number;
  /**
   * Whether this is everything that a vendor may read from the file. Otherwise nothing is known about the rest, and the
   * model's whole context is reserved.
   */
  readonly isComplete: boolean;
}

/** A file as sent, and the model properties that its number of tokens depends on. */
export interface FileRequest {
  readonly filename: string;
  readonly dataUri: string;
  /** Tokens that remain in the model's context. */
  readonly maxTokens: number;
  readonly tokensPerPage: number;
  readonly tokensPerImage: number;
  readonly tokenizer: EncodingName;
}

/**
 * Size of a file's content. The text itself stays in the process that read it, because a megabyte can unpack to fifty
 * megabytes of text.
 */
export interface CountedFile extends Omit<FileContent, 'texts'> {
  readonly textTokens: number;
  /** Estimated tokens of its text in other vocabularies. */
  readonly textTokensInOtherVocabularies: number;
  /** Length of its text in UTF-8. */
  readonly textBytes: number;
}

/** How readers may interpret a file. */
export type FileKind = 'pdf' | 'text';

/** A file to be read as a document of one kind, and the limits. What exceeds them exceeds the model's context too. */
export interface DocumentRequest {
  readonly bytes: Buffer;
  readonly maxCharacters: number;
  readonly maxPages: number;
}

/** The texts and pages of a document. */
export type DocumentContent = Pick<FileContent, 'texts' | 'pages'>;

export type DocumentFault =
  /** Damaged, or not of this kind. */
  | 'unreadable'
  | 'protected'
  /** More text or pages than the limits allow. */
  | 'too_long'
  /** Reading it exceeds the time or memory for one file. */
  | 'too_large';

export type DocumentResult = DocumentContent | { readonly fault: DocumentFault };

export interface FileFault {
  readonly fault: DocumentFault | 'no_data_uri';
  /** The kind that the file was read as, if known. */
  readonly kind?: FileKind;
}

export type FileResult = CountedFile | FileFault;

/** The reply of a file process. */
export interface FileReply {
  readonly answer: FileResult;
  /** Current size of WebAssembly's memory in the process. */
  readonly memoryBytes: number;
}
