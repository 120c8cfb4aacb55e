import { randomBytes } from 'node:crypto';

/** How long a link to an image works, and how long the image is kept. */
export const fileLifetimeMs = 24 * 60 * 60 * 1_000;

const extensions = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/webp': 'webp' } as const;

export type FileType = keyof typeof extensions;

const typeByExtension = new Map<string, FileType>(
  Object.entries(extensions).map(([type, extension]) => [extension, type as FileType]),
);

/** The folder of the bucket that images are in, and nothing else. */
export const filePrefix = 'files/';

/** Milliseconds in hexadecimal, at a fixed width: names sort by the time at which they were made until the year 10889. */
const timeDigits = 12;

const encodeTime = (atMs: number): string => atMs.toString(16).padStart(timeDigits, '0');

const namePattern = /^(?:([0-9a-f]{12})-)?([A-Za-z0-9_-]{43})\.(png|jpg|webp)$/;

/** What the name of a file says of it. */
export interface FileName {
  /** Where its object is in the bucket. */
  readonly key: string;
  /** Null for a name of the former kind, without a time: such a file is as old as its object. */
  readonly createdAtMs: number | null;
  readonly contentType: FileType;
  /**
   * Content-Disposition: what a browser calls the file when it is saved. Plain ASCII, and not enough of the name to guess
   * the link by.
   */
  readonly disposition: string;
}

/**
 * Names a new file. The time comes first, so that a listing of the folder begins with the files that are due to be
 * deleted; the 256 random bits behind it are what nobody can guess.
 * @returns the key of its object
 */
export function createFileKey(contentType: FileType, nowMs = Date.now()): string {
  const secret = randomBytes(32).toString('base64url');
  return `${filePrefix}${encodeTime(nowMs)}-${secret}.${extensions[contentType]}`;
}

/** Null for what cannot be the name of a file. */
export function parseFileName(name: string): FileName | null {
  const match = namePattern.exec(name);
  if (match === null) return null;
  const [, time, secret = '', extension = ''] = match;
  return {
    // Files of the former kind lie at the bucket's root.
    key: time === undefined ? name : `${filePrefix}${name}`,
    createdAtMs: time === undefined ? null : Number.parseInt(time, 16),
    contentType: typeByExtension.get(extension)!,
    disposition: `inline; filename="image-${secret.slice(0, 8)}.${extension}"`,
  };
}

/** The name in a link, from the key of the object that it leads to. */
export const fileNameOf = (key: string): string =>
  key.startsWith(filePrefix) ? key.slice(filePrefix.length) : key;

/** Null where the key is not that of a file with a time in its name. */
function parseKey(key: string): { disposition: string; dueAtMs: number } | null {
  if (!key.startsWith(filePrefix)) return null;
  const { createdAtMs = null, disposition = '' } = parseFileName(fileNameOf(key)) ?? {};
  return createdAtMs === null ? null : { disposition, dueAtMs: createdAtMs + fileLifetimeMs };
}

/** When the file of a key is to be deleted. Null where the key is not that of a file with a time in its name. */
export const findDueTime = (key: string): number | null => parseKey(key)?.dueAtMs ?? null;

/** What the object of a file tells those who fetch it from the bucket or a CDN. */
export function findObjectHeaders(key: string): { ContentDisposition?: string; Expires?: Date } {
  const file = parseKey(key);
  return file === null ? {} : { ContentDisposition: file.disposition, Expires: new Date(file.dueAtMs) };
}
