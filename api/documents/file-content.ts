import type { EncodingName } from '../../shared/catalog/count-tokens.ts';

export interface RepeatedText {
  readonly text: string;
  /** Number of times that the file shows the text. */
  readonly times: number;
}

/**
 * The content that a vendor reads from a file. Covers one interpretation of the file, or all possible ones together.
 */
export interface FileContent {
  readonly texts: readonly RepeatedText[];
  /** Pages that are read as images in addition to their text. */
  readonly pages: number;
  /** Tokens of images, empty cells, and content that cannot be read here. */
  readonly otherTokens: number;
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
export type FileKind = DocumentKind | 'text';

/** Kinds whose content is only known after unpacking. */
export type DocumentKind = 'pdf' | 'zip' | 'xls';

export interface DocumentRequest {
  readonly kind: DocumentKind;
  readonly bytes: Buffer;
  /** Limits for reading. Longer texts and more pages exceed the model's context anyway. */
  readonly maxCharacters: number;
  readonly maxPages: number;
}

export type DocumentFault =
  /** Damaged, or not of this kind. */
  | 'unreadable'
  | 'protected'
  /** More text or pages than the limits allow. */
  | 'too_long'
  /** Reading it exceeds the time or memory for one file. */
  | 'too_large';

export type DocumentResult = FileContent | { readonly fault: DocumentFault };

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
