import { isUtf8 } from 'node:buffer';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { ChatRequest } from '../../shared/contract/chat.ts';
import type { FilePart } from '../../shared/contract/chat-messages.ts';
import { parseDataUri } from '../../shared/contract/data-uri.ts';
import { type AppError, invalidField } from '../../shared/contract/errors.ts';
import type { DocumentReader } from './document-reader.ts';
import type {
  DocumentFault,
  DocumentKind,
  DocumentRequest,
  FileContent,
  RepeatedText,
} from './file-content.ts';
import { isXls } from './xls-text.ts';

type ErrorPlace = readonly (string | number)[];

/** Of what is no text: most formats hold less than a token in so many bytes. */
const bytesPerUnreadToken = 2;
/** No text is as dense as this: a longer one is beyond the context without being counted. */
const maxCharactersPerToken = 16;

/**
 * What the files of a chat hold, in their order: a few kilobytes of PDF can unpack to a million tokens, so what is
 * reserved for a file goes by its content, not by its size.
 * @throws AppError `validation_failed`, `content_too_long`, `queue_full`; the signal's reason
 */
export async function readFiles(
  documents: DocumentReader,
  accountId: string,
  { messages }: ChatRequest,
  model: CatalogModel,
  signal: AbortSignal,
): Promise<FileContent[]> {
  const contents: FileContent[] = [];
  const left = {
    maxCharacters: model.context * maxCharactersPerToken,
    maxPages: Math.floor(model.context / model.tokensPerPage),
  };
  for (const [i, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [j, { file }] of content.entries()) {
      if (!file) continue;
      const place = ['body', 'messages', i, 'content', j, 'file', 'file_data'];
      const { mediaType, bytes } = decode(file, place);
      const kinds = findKinds(file, mediaType, bytes);
      const texts: RepeatedText[] = [];
      let pages = 0;
      let tokens = 0;
      for (const kind of kinds) {
        if (kind === 'text') {
          texts.push({ text: bytes.toString('utf8'), times: 1 });
          continue;
        }
        const read = await readDocument(documents, accountId, { kind, bytes, left, model, place, signal });
        left.maxPages -= read.pages;
        pages += read.pages;
        tokens += read.tokens;
        for (const text of read.texts) {
          left.maxCharacters -= text.text.length * text.times;
          texts.push(text);
        }
      }
      if (mediaType.startsWith('image/')) tokens += model.tokensPerPicture;
      else if (kinds.length === 0) tokens += Math.ceil(bytes.length / bytesPerUnreadToken);
      contents.push({ texts, pages, tokens });
    }
  }
  return contents;
}

interface DocumentToRead {
  readonly kind: DocumentKind;
  readonly bytes: Buffer;
  readonly left: Pick<DocumentRequest, 'maxCharacters' | 'maxPages'>;
  readonly model: CatalogModel;
  readonly place: ErrorPlace;
  readonly signal: AbortSignal;
}

async function readDocument(
  documents: DocumentReader,
  accountId: string,
  { kind, bytes, left, model, place, signal }: DocumentToRead,
): Promise<FileContent> {
  const request: DocumentRequest = { kind, bytes, ...left };
  const answer = await documents.read(accountId, request, signal);
  if ('fault' in answer) throw refuse(answer.fault, kind, model, place);
  return answer;
}

function decode(file: FilePart, place: ErrorPlace): { mediaType: string; bytes: Buffer } {
  const data = parseDataUri(file.file_data ?? '');
  if (data === null) {
    const msg = 'must be a data URI of canonical base64, such as data:application/pdf;base64,…';
    throw invalidField(place, msg);
  }
  return { mediaType: data.mediaType, bytes: Buffer.from(data.base64, 'base64') };
}

const pdfName = /\.pdf$/i;
const zipName = /\.(?:docx|docm|dotx|xlsx|xlsm|xlsb|xltx|pptx|pptm|ppsx|potx|od[tspg]|epub|zip)$/i;
const zipType =
  /^application\/(?:zip|epub\+zip|vnd\.openxmlformats|vnd\.oasis\.opendocument|vnd\.ms-.*\.macroenabled)/;
/** Names of files that are read as text whatever their bytes look like. */
const textName = /\.(?:txt|md|markdown|csv|tsv|json|x?html?|xml|ya?ml|log)$/i;

/**
 * Vendors go by the type, by the name or by the bytes: whatever any of them may take a file for is counted, also where it
 * is several things at once. Archives are read from their end, so that a PDF may stand in front of one.
 */
function findKinds(
  { filename }: FilePart,
  mediaType: string,
  bytes: Buffer,
): readonly (DocumentKind | 'text')[] {
  const name = filename ?? '';
  const startsWith = (head: string): boolean => bytes.toString('latin1', 0, head.length) === head;
  const kinds: (DocumentKind | 'text')[] = [];
  if (mediaType === 'application/pdf' || pdfName.test(name) || beginsAsPdf(bytes)) kinds.push('pdf');
  if (zipType.test(mediaType) || zipName.test(name) || startsWith('PK\u0003\u0004')) kinds.push('zip');
  if (isXls(bytes)) kinds.push('xls');
  if (mediaType.startsWith('text/') || textName.test(name) || (kinds.length === 0 && isUtf8(bytes))) {
    kinds.push('text');
  }
  return kinds;
}

/** Readers look for the beginning in the first 1024 bytes; a text may speak of it there, and then has no objects. */
function beginsAsPdf(bytes: Buffer): boolean {
  return /%PDF-\d/.test(bytes.toString('latin1', 0, 1024)) && bytes.includes(' obj');
}

function refuse(fault: DocumentFault, kind: DocumentKind, model: CatalogModel, place: ErrorPlace): AppError {
  const name = kind === 'pdf' ? 'PDF' : 'document';
  switch (fault) {
    case 'too_long':
      return invalidField(
        place,
        `The ${name} is longer than the model's context of ${model.context} tokens. Send fewer pages of it.`,
        { code: 'content_too_long' },
      );
    case 'protected':
      return invalidField(place, `The ${name} needs a password. Send it without protection.`);
    case 'unreadable':
      return invalidField(
        place,
        `The ${name} cannot be read: it is damaged or of another type. Save it anew.`,
      );
    case 'too_large':
      return invalidField(
        place,
        `Reading the ${name} takes too much time or memory. Send fewer pages of it, or its text.`,
      );
    default:
      return fault satisfies never;
  }
}
