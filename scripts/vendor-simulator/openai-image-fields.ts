import { readBase64 } from './image-type.ts';
import { isRecord, readText } from './json-record.ts';
import { UploadedFile } from './read-request.ts';

type Body = Readonly<Record<string, unknown>>;

/** A number, which a form has as a text; null where there is none. */
export function readNumber(value: unknown): number | null {
  if (value === undefined || value === null || value === '') return null;
  return typeof value === 'number' ? value : Number(value);
}

/** The images of an edit, of a form or of JSON, in their order. */
export function listFiles(body: Body): readonly unknown[] {
  return ['image', 'image[]', 'images'].flatMap((name) => {
    const value = body[name] ?? [];
    return Array.isArray(value) ? (value as unknown[]) : [value];
  });
}

export function countFiles(body: Body): number {
  return listFiles(body).length;
}

/** The bytes of a form's file, or of a data URI in JSON; null where there are none, as of a link. */
export function readFileBytes(value: unknown): Buffer | null {
  if (value instanceof UploadedFile) return value.bytes;
  const url = readText(isRecord(value) ? value['image_url'] : value);
  const [, base64] = /^data:image\/[a-z+]+;base64,(.*)$/s.exec(url) ?? [];
  return base64 === undefined ? null : readBase64(base64);
}

/** A link, which a vendor would fetch and the simulator does not. */
export function isLink(value: unknown): boolean {
  return isRecord(value) && readText(value['image_url']).startsWith('https://');
}
