import { type DataUri, splitDataUri } from '../../../shared/contract/data-uri.ts';
import { readImageUrl } from '../collect-media.ts';
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readText } from '../json-value.ts';
import { type LoadedMedia, UpstreamError } from '../upstream.ts';

/** A content block in the Messages API's format. */
export type Block = Record<string, unknown>;

/** The loaded images, by URL. Images that are not in the map are sent as URLs. */
export type MediaMap = ReadonlyMap<string, LoadedMedia>;

/** Converts the content of a message to blocks. Omits blank texts, which the API rejects. */
export function toBlocks(content: unknown, media: MediaMap, where: string): Block[] {
  if (typeof content === 'string') {
    return toTextBlocks(content);
  }
  return readArray(content).flatMap((part) => (isRecord(part) ? toPartBlocks(part, media, where) : []));
}

export function toTextBlocks(text: string): Block[] {
  return text.trim() === '' ? [] : [{ type: 'text', text }];
}

/** Returns only the text of a message, for fields that accept nothing else. */
export function readContentText(content: unknown): string {
  if (typeof content === 'string') {
    return content;
  }
  const texts = readArray(content).flatMap((part) => (isRecord(part) ? (readText(part['text']) ?? []) : []));
  return texts.filter((text) => text.trim() !== '').join('\n');
}

function toPartBlocks(part: JsonRecord, media: MediaMap, where: string): Block[] {
  const url = readImageUrl(part);
  if (url !== null) {
    return [toImageBlock(url, media)];
  }
  if (isRecord(part['file'])) {
    return [toDocumentBlock(part['file'], where)];
  }
  const type = readText(part['type']) ?? 'text';
  if (type !== 'text' && type !== 'refusal') {
    throw new UpstreamError('rejected', `${where}: this model does not accept content of type ${type}.`);
  }
  return toTextBlocks(readText(part['text']) ?? readText(part['refusal']) ?? '');
}

function toImageBlock(url: string, media: MediaMap): Block {
  const loadedImage = media.get(url);
  const source =
    loadedImage === undefined
      ? { type: 'url', url }
      : { type: 'base64', media_type: loadedImage.mediaType, data: loadedImage.base64 };
  return { type: 'image', source };
}

/**
 * Converts a file sent as `data:<type>;base64,<bytes>`. PDFs stay base64. Texts are decoded, because the API accepts
 * them only as plain text.
 */
function toDocumentBlock(file: JsonRecord, where: string): Block {
  // Admission has already checked the base64.
  const data = splitDataUri(readText(file['file_data']) ?? '');
  if (data === null) {
    throw new UpstreamError(
      'rejected',
      `${where}: file.file_data must contain the file as a base64 data URI.`,
    );
  }
  const title = readText(file['filename']);
  return { type: 'document', source: toDocumentSource(data, where), ...(title && { title }) };
}

function toDocumentSource({ mediaType, base64 }: DataUri, where: string): Block {
  if (mediaType === 'application/pdf') {
    return { type: 'base64', media_type: 'application/pdf', data: base64 };
  }
  if (mediaType.startsWith('text/')) {
    const data = Buffer.from(base64, 'base64').toString('utf8');
    if (data.trim() === '') {
      throw new UpstreamError('rejected', `${where}: the file is empty.`);
    }
    return { type: 'text', media_type: 'text/plain', data };
  }
  throw new UpstreamError(
    'rejected',
    `${where}: this model accepts only PDF and text files, not ${mediaType}.`,
  );
}
