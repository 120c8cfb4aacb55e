import { isUtf8 } from 'node:buffer';
import { parseDataUri } from '../../contract/data-uri.ts';
import { countTokensAsync } from '../../catalog/count-tokens.ts';
import { estimateInOtherVocabularies } from '../tokens/other-vocabularies.ts';
import type {
  DocumentResult,
  FileResult,
  FileContent,
  FileFault,
  FileKind,
  FileRequest,
} from './file-content.ts';
import { readPdf, type Pdfium } from './pdf-text.ts';

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
  const { texts, pages, imageTokens, isComplete } = content;
  const remaining = request.maxTokens - pages * request.tokensPerPage - imageTokens;
  let textTokens = 0;
  let textTokensInOtherVocabularies = 0;
  let textBytes = 0;
  for (const text of texts) {
    const limit = remaining - textTokens;
    const counted = text === '' ? 0 : await countTokensAsync(text, { limit, encoding: request.tokenizer });
    if (counted === null) return { fault: 'too_long' };
    textTokens += counted;
    textTokensInOtherVocabularies += estimateInOtherVocabularies(text);
    textBytes += Buffer.byteLength(text);
  }
  return { textTokens, textTokensInOtherVocabularies, textBytes, pages, imageTokens, isComplete };
}

/** Reads the file once for each kind it may be interpreted as. */
export function readFile(pdfium: Pdfium, request: FileRequest): FileContent | FileFault {
  const data = parseDataUri(request.dataUri);
  if (data === null) return { fault: 'no_data_uri' };
  const { mediaType } = data;
  const bytes = Buffer.from(data.base64, 'base64');
  const kinds = findKinds(request.filename, mediaType, bytes);
  const mayBeOther = isContainer(request.filename, mediaType, bytes);
  // Readers start at different ends of a file, so it can be a PDF and an archive with other content.
  if (mayBeOther && kinds.includes('pdf')) return { fault: 'unreadable', kind: 'pdf' };
  const texts: string[] = [];
  let pages = 0;
  let maxCharacters = request.maxTokens * maxCharactersPerToken;
  for (const kind of kinds) {
    const maxPages = Math.floor(request.maxTokens / request.tokensPerPage) - pages;
    const read =
      kind === 'text' ? readText(bytes, maxCharacters) : readPdf(pdfium, { bytes, maxCharacters, maxPages });
    if ('fault' in read) return { ...read, kind };
    pages += read.pages;
    for (const text of read.texts) {
      maxCharacters -= text.length;
      texts.push(text);
    }
  }
  const isImage = mediaType.startsWith('image/');
  return {
    texts,
    pages,
    imageTokens: isImage ? request.tokensPerImage : 0,
    isComplete: !mayBeOther && (isImage || kinds.length > 0),
  };
}

function readText(bytes: Buffer, maxCharacters: number): DocumentResult {
  if (bytes.length > maxCharacters * maxBytesPerCharacter) return { fault: 'too_long' };
  return { texts: [bytes.toString('utf8')], pages: 0 };
}

const pdfName = /\.pdf$/i;
/** Names of files that are read as text, regardless of their bytes. */
const textName = /\.(?:txt|md|markdown|csv|tsv|json|x?html?|xml|ya?ml|log)$/i;

/**
 * Finds every kind of document that a vendor may interpret the file as, according to its type, name or bytes. The
 * estimate includes all of them.
 */
function findKinds(name: string, mediaType: string, bytes: Buffer): readonly FileKind[] {
  const kinds: FileKind[] = [];
  if (mediaType === 'application/pdf' || pdfName.test(name) || beginsAsPdf(bytes)) kinds.push('pdf');
  if (mediaType.startsWith('text/') || textName.test(name) || (kinds.length === 0 && isUtf8(bytes)))
    kinds.push('text');
  return kinds;
}

const containerName =
  /\.(?:docx?|docm|dotx|xlsx?|xlsm|xlsb|xltx|pptx?|pptm|ppsx|potx|od[tspg]|epub|zip|rtf|msg|pages|numbers|key)$/i;
const containerType =
  /^application\/(?:zip|epub\+zip|rtf|msword|vnd\.openxmlformats|vnd\.oasis\.opendocument|vnd\.ms-)/;
/** The start of older office documents. */
const compoundFile = Buffer.from('d0cf11e0a1b11ae1', 'hex');
const archiveStart = Buffer.from('PK\u0003\u0004', 'latin1');
/** The last record of an archive: 22 bytes, of which the last two are the length of the comment that follows. */
const archiveEnd = Buffer.from('PK\u0005\u0006', 'latin1');
const archiveEndBytes = 22;
const maxCommentBytes = 65_535;

/** Whether a vendor may unpack the file, such as an office document: its type, its name or its bytes say so. */
function isContainer(name: string, mediaType: string, bytes: Buffer): boolean {
  return (
    containerName.test(name) ||
    containerType.test(mediaType) ||
    [compoundFile, archiveStart].some((start) => bytes.subarray(0, start.length).equals(start)) ||
    endsAsArchive(bytes)
  );
}

function endsAsArchive(bytes: Buffer): boolean {
  const last = bytes.subarray(-archiveEndBytes - maxCommentBytes);
  for (let at = last.indexOf(archiveEnd); at >= 0; at = last.indexOf(archiveEnd, at + 1)) {
    const commentAt = at + archiveEndBytes;
    if (commentAt <= last.length && commentAt + last.readUInt16LE(commentAt - 2) === last.length) return true;
  }
  return false;
}

/**
 * Readers search the first 1024 bytes for the header. A text may contain the header there too, but has no PDF objects.
 */
function beginsAsPdf(bytes: Buffer): boolean {
  return /%PDF-\d/.test(bytes.toString('latin1', 0, 1024)) && bytes.includes(' obj');
}
