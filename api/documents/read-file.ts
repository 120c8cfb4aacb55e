import { isUtf8 } from 'node:buffer';
import { parseDataUri } from '../../shared/contract/data-uri.ts';
import { countTokensAsync } from '../../shared/catalog/count-tokens.ts';
import { estimateInOtherVocabularies } from '../tokens/other-vocabularies.ts';
import type {
  DocumentResult,
  DocumentRequest,
  FileResult,
  FileContent,
  FileFault,
  FileKind,
  FileRequest,
  RepeatedText,
} from './file-content.ts';
import { readPdf, type Pdfium } from './pdf-text.ts';
import { isXls, readXls } from './xls-text.ts';
import { readZip } from './zip-text.ts';

/** Assumed bytes per token for content that is not text. For most formats, this overestimates the tokens. */
const bytesPerUnreadToken = 2;
/**
 * No text has more characters per token than this. A text with more characters than this times the remaining tokens
 * certainly exceeds the context, and need not be tokenized.
 */
const maxCharactersPerToken = 16;
/** Maximum UTF-8 bytes per UTF-16 code unit. Lengths of texts are in code units. */
const maxBytesPerCharacter = 3;

/** Reads and tokenizes a file. Its unpacked content is in memory only during that time. */
export async function countFile(pdfium: Pdfium, request: FileRequest): Promise<FileResult> {
  const content = readFile(pdfium, request);
  if ('fault' in content) return content;
  const { texts, pages, otherTokens } = content;
  const remaining = request.maxTokens - pages * request.tokensPerPage - otherTokens;
  let textTokens = 0;
  let textTokensInOtherVocabularies = 0;
  let textBytes = 0;
  for (const { text, times } of texts) {
    const limit = Math.floor((remaining - textTokens) / times);
    const counted = text === '' ? 0 : await countTokensAsync(text, { limit, encoding: request.tokenizer });
    if (counted === null) return { fault: 'too_long' };
    textTokens += counted * times;
    textTokensInOtherVocabularies += estimateInOtherVocabularies(text) * times;
    textBytes += Buffer.byteLength(text) * times;
  }
  return { textTokens, textTokensInOtherVocabularies, textBytes, pages, otherTokens };
}

/** Reads the file once for each kind it may be interpreted as. */
export function readFile(pdfium: Pdfium, request: FileRequest): FileContent | FileFault {
  const data = parseDataUri(request.dataUri);
  if (data === null) return { fault: 'no_data_uri' };
  const { mediaType } = data;
  const bytes = Buffer.from(data.base64, 'base64');
  const kinds = findKinds(request.filename, mediaType, bytes);
  const texts: RepeatedText[] = [];
  let pages = 0;
  let otherTokens = 0;
  let maxCharacters = request.maxTokens * maxCharactersPerToken;
  for (const kind of kinds) {
    const maxPages = Math.floor(request.maxTokens / request.tokensPerPage) - pages;
    const read =
      kind === 'text'
        ? readText(bytes, maxCharacters)
        : readDocument(pdfium, { kind, bytes, maxCharacters, maxPages });
    if ('fault' in read) return { ...read, kind };
    pages += read.pages;
    otherTokens += read.otherTokens;
    for (const text of read.texts) {
      maxCharacters -= text.text.length * text.times;
      texts.push(text);
    }
  }
  if (mediaType.startsWith('image/')) otherTokens += request.tokensPerImage;
  else if (kinds.length === 0) otherTokens += Math.ceil(bytes.length / bytesPerUnreadToken);
  return { texts, pages, otherTokens };
}

export function readDocument(pdfium: Pdfium, request: DocumentRequest): DocumentResult {
  const { kind, bytes, maxCharacters, maxPages } = request;
  if (kind === 'pdf') return readPdf(pdfium, { bytes, maxCharacters, maxPages });
  return kind === 'zip' ? readZip(bytes, maxCharacters) : readXls(bytes, maxCharacters);
}

function readText(bytes: Buffer, maxCharacters: number): DocumentResult {
  if (bytes.length > maxCharacters * maxBytesPerCharacter) return { fault: 'too_long' };
  return { texts: [{ text: bytes.toString('utf8'), times: 1 }], pages: 0, otherTokens: 0 };
}

const pdfName = /\.pdf$/i;
const zipName = /\.(?:docx|docm|dotx|xlsx|xlsm|xlsb|xltx|pptx|pptm|ppsx|potx|od[tspg]|epub|zip)$/i;
const zipType =
  /^application\/(?:zip|epub\+zip|vnd\.openxmlformats|vnd\.oasis\.opendocument|vnd\.ms-.*\.macroenabled)/;
/** Names of files that are read as text, regardless of their bytes. */
const textName = /\.(?:txt|md|markdown|csv|tsv|json|x?html?|xml|ya?ml|log)$/i;

/**
 * Finds every kind of document that a vendor may interpret the file as, according to its type, name or bytes. The
 * estimate includes all of them. Archives are read from their end, so a file can be both a PDF and an archive.
 */
function findKinds(name: string, mediaType: string, bytes: Buffer): readonly FileKind[] {
  const startsWith = (head: string): boolean => bytes.toString('latin1', 0, head.length) === head;
  const kinds: FileKind[] = [];
  if (mediaType === 'application/pdf' || pdfName.test(name) || beginsAsPdf(bytes)) kinds.push('pdf');
  if (zipType.test(mediaType) || zipName.test(name) || startsWith('PK\u0003\u0004')) kinds.push('zip');
  if (isXls(bytes)) kinds.push('xls');
  if (mediaType.startsWith('text/') || textName.test(name) || (kinds.length === 0 && isUtf8(bytes))) {
    kinds.push('text');
  }
  return kinds;
}

/**
 * Readers search the first 1024 bytes for the header. A text may contain the header there too, but has no PDF objects.
 */
function beginsAsPdf(bytes: Buffer): boolean {
  return /%PDF-\d/.test(bytes.toString('latin1', 0, 1024)) && bytes.includes(' obj');
}
