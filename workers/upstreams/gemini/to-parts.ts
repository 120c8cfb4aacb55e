import { splitDataUri } from '../../../shared/contract/data-uri.ts';
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { lookUp, readText } from '../json-value.ts';
import { type ChatMessage, type LoadedMedia, UpstreamError, type UpstreamTarget } from '../upstream.ts';

/** Converts the contents of messages to Gemini's parts. Pure. */

/** The images whose bytes are sent to the vendor, by URL. */
export type LoadedImages = ReadonlyMap<string, LoadedMedia>;

const AUDIO_TYPES: Readonly<Record<string, string>> = { wav: 'audio/wav', mp3: 'audio/mp3' };
/** The type for `fileData`, by the extension of the URL. */
const LINK_TYPES: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  heic: 'image/heic',
  heif: 'image/heif',
};

/**
 * URLs on this host refer to files of the key's account. A caller's URL would read them, or be rejected as an error
 * of the key.
 */
const KEY_ACCOUNT_HOST = /^generativelanguage\.googleapis\.com\.?$/;

/**
 * Whether an image is sent as bytes. The vendor fetches URLs only if the route allows it, and only https ones. A URL of
 * unknown type is not sent as a URL, because the vendor accepts any content, and would bill a video or a document whose
 * tokens were estimated as one image.
 */
export function isSentAsBytes(target: UpstreamTarget, url: string): boolean {
  if (target.imageUrls === 'fetch' || !url.startsWith('https://')) return true;
  return KEY_ACCOUNT_HOST.test(new URL(url).hostname) || findLinkType(url) === undefined;
}

function findLinkType(url: string): string | undefined {
  const extension = /\.([a-z]+)$/i.exec(new URL(url).pathname)?.[1]?.toLowerCase() ?? '';
  return lookUp(LINK_TYPES, extension);
}

export function toParts(
  content: ChatMessage['content'],
  target: UpstreamTarget,
  images: LoadedImages,
): JsonRecord[] {
  if (!Array.isArray(content)) {
    return toTextParts(content);
  }
  return content.flatMap((part: JsonRecord) => {
    switch (readType(part)) {
      case 'text':
        return toTextParts(part['text']);
      case 'refusal':
        return toTextParts(part['refusal']);
      case 'image_url':
        return [toImagePart(part['image_url'], target, images)];
      case 'file':
        return [toFilePart(part['file'])];
      case 'input_audio':
        return [toAudioPart(part['input_audio'])];
      default:
        throw new UpstreamError('rejected', 'This model does not accept message parts of that type.');
    }
  });
}

/** Returns the text of a message that may contain nothing else. */
export function readOnlyText(content: ChatMessage['content'], role: string): string {
  if (!Array.isArray(content)) {
    return typeof content === 'string' ? content : '';
  }
  return content
    .map((part: JsonRecord) => {
      if (readType(part) !== 'text') {
        throw new UpstreamError('rejected', `A ${role} message to this model can contain only text.`);
      }
      return readText(part['text']) ?? '';
    })
    .join('');
}

/** The contract allows a part without a type if its fields imply the type. */
function readType(part: JsonRecord): string {
  const fields = ['image_url', 'file', 'input_audio'];
  return readText(part['type']) ?? fields.find((field) => isRecord(part[field])) ?? 'text';
}

/** Omits an empty text, which the vendor rejects in some fields. */
function toTextParts(text: unknown): JsonRecord[] {
  return typeof text === 'string' && text !== '' ? [{ text }] : [];
}

function toImagePart(image: unknown, target: UpstreamTarget, images: LoadedImages): JsonRecord {
  const url = isRecord(image) ? readText(image['url']) : null;
  if (url === null) {
    throw new UpstreamError('rejected', 'An image in the messages has no URL.');
  }
  if (!isSentAsBytes(target, url)) {
    return { fileData: { mimeType: findLinkType(url), fileUri: url } };
  }
  const loadedImage = images.get(url);
  if (loadedImage === undefined) {
    throw new TypeError('an image in the messages was not loaded before they were translated');
  }
  return toInlineData(loadedImage.mediaType, loadedImage.base64);
}

function toFilePart(file: unknown): JsonRecord {
  // Admission has already checked the base64.
  const data = splitDataUri((isRecord(file) ? readText(file['file_data']) : null) ?? '');
  if (data === null) {
    throw new UpstreamError(
      'rejected',
      'A file in the messages must be sent in `file_data`, as a base64 data URI.',
    );
  }
  return toInlineData(data.mediaType, data.base64);
}

function toAudioPart(audio: unknown): JsonRecord {
  const data = isRecord(audio) ? readText(audio['data']) : null;
  const mediaType = isRecord(audio) ? lookUp(AUDIO_TYPES, readText(audio['format'])) : undefined;
  if (data === null || mediaType === undefined) {
    throw new UpstreamError(
      'rejected',
      'Audio in the messages must have `data`, and a `format` of wav or mp3.',
    );
  }
  return toInlineData(mediaType, data);
}

function toInlineData(mimeType: string, data: string): JsonRecord {
  return { inlineData: { mimeType, data } };
}
