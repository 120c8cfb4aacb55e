// decision 0049
import { randomBytes } from 'node:crypto';

/** How long an image is stored and its link works. */
export const fileLifetimeMs = 24 * 60 * 60 * 1_000;

const extensions = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/webp': 'webp' } as const;

export type FileType = keyof typeof extensions;

const typeByExtension = new Map<string, FileType>(
  Object.entries(extensions).map(([type, extension]) => [extension, type as FileType]),
);

/** Bucket folder that contains only images. */
export const filePrefix = 'files/';

/** Bucket folder of the API's files: the input and the results of batches. Only the api reads them. */
export const apiFilePrefix = 'batch-files/';

/** Milliseconds in hexadecimal, at a fixed width. Names sort by creation time until the year 10889. */
const timeDigits = 12;

const encodeTime = (atMs: number): string => atMs.toString(16).padStart(timeDigits, '0');

/** Images that a batch has made are not kept for a day, but until this time. */
const lastingPrefix = 'until-';

const namePattern = /^(until-)?(?:([0-9a-f]{12})-)?([A-Za-z0-9_-]{43})\.(png|jpg|webp)$/;

const apiFilePattern = /^batch-files\/([0-9a-f]{12})-[A-Za-z0-9_-]{43}(?:\.(?:png|jpg|webp))?$/;

/** The facts that a file's name encodes. */
export interface FileName {
  /** The file's key in the bucket. */
  readonly key: string;
  /**
   * Null for a name in the old format, which contains no time, and for an image of a batch. The bucket knows when such a
   * file was stored.
   */
  readonly createdAtMs: number | null;
  /** When it is deleted. Null for a name in the old format. */
  readonly dueAtMs: number | null;
  readonly contentType: FileType;
  /**
   * Content-Disposition, with the name under which a browser saves the file. That name is ASCII and contains only eight
   * of the link's 43 random characters, so it does not reveal the link.
   */
  readonly disposition: string;
}

/**
 * Creates a name for a new file. It starts with the time, so that a listing of the folder starts with the files that
 * are due for deletion. The 256 random bits after the time make the name unguessable.
 * @returns the file's key in the bucket
 */
export function createFileKey(contentType: FileType, nowMs = Date.now()): string {
  return `${filePrefix}${createName(nowMs)}.${extensions[contentType]}`;
}

/**
 * Creates a key for a new file of the API. It contains the time at which the file is due for deletion, so that a listing
 * of the folder starts with the files that are due. The bucket's lifecycle rule deletes files after 31 days in any case,
 * so the time must not be later than that.
 */
export const createApiFileKey = (dueAtMs: number): string => `${apiFilePrefix}${createName(dueAtMs)}`;

const createName = (atMs: number): string => `${encodeTime(atMs)}-${randomBytes(32).toString('base64url')}`;

/** Creates a name for an image of a batch. The time must not be later than that of `createApiFileKey`. */
export const createLastingFileKey = (contentType: FileType, dueAtMs: number): string =>
  `${createApiFileKey(dueAtMs)}.${extensions[contentType]}`;

/** Returns null if the text cannot be the name of a file. */
export function parseFileName(name: string): FileName | null {
  const match = namePattern.exec(name);
  if (match === null) return null;
  const [, lasting, time, secret = '', extension = ''] = match;
  if (lasting !== undefined && time === undefined) return null;
  const atMs = time === undefined ? null : Number.parseInt(time, 16);
  const isLasting = lasting !== undefined;
  // Files with names in the old format are at the bucket's root.
  const folder = isLasting ? apiFilePrefix : atMs === null ? '' : filePrefix;
  return {
    key: `${folder}${isLasting ? name.slice(lastingPrefix.length) : name}`,
    createdAtMs: isLasting ? null : atMs,
    dueAtMs: isLasting || atMs === null ? atMs : atMs + fileLifetimeMs,
    contentType: typeByExtension.get(extension)!,
    disposition: `inline; filename="image-${secret.slice(0, 8)}.${extension}"`,
  };
}

/** Returns the file's name, as in links, from its key in the bucket. */
export function fileNameOf(key: string): string {
  if (key.startsWith(apiFilePrefix)) return `${lastingPrefix}${key.slice(apiFilePrefix.length)}`;
  return key.startsWith(filePrefix) ? key.slice(filePrefix.length) : key;
}

/** Returns null if the key does not belong to an image with a time in its name. */
function parseKey(key: string): { disposition: string; dueAtMs: number } | null {
  if (!key.startsWith(filePrefix) && !key.startsWith(apiFilePrefix)) return null;
  const { dueAtMs = null, disposition = '' } = parseFileName(fileNameOf(key)) ?? {};
  return dueAtMs === null ? null : { disposition, dueAtMs };
}

/**
 * Returns when an image or a file of the API is due for deletion, in milliseconds. Null if the key does not belong to a
 * file with a time in its name.
 */
export function findDueTime(key: string): number | null {
  const [, dueTime] = apiFilePattern.exec(key) ?? [];
  return dueTime === undefined ? (parseKey(key)?.dueAtMs ?? null) : Number.parseInt(dueTime, 16);
}

/** Returns headers for clients that fetch a file directly from the bucket or a CDN. */
export function findObjectHeaders(key: string): { ContentDisposition?: string; Expires?: Date } {
  const file = parseKey(key);
  return file === null ? {} : { ContentDisposition: file.disposition, Expires: new Date(file.dueAtMs) };
}
