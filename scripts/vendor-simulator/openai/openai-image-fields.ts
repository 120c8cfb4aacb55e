import { readBase64 } from '../read-base64.ts';
import { isRecord } from '../../../shared/encoding/json-record.ts';
import { readText } from '../json-record.ts';
import { UploadedFile } from '../read-request.ts';

type Body = Readonly<Record<string, unknown>>;

/** Reads a number, which a form sends as text. Null if there is none. */
export function readNumber(value: unknown): number | null {
  if (value === undefined || value === null || value === '') return null;
  return typeof value === 'number' ? value : Number(value);
}

/** Lists the images of an edit, from a form or JSON, in order. */
export function listFiles(body: Body): readonly unknown[] {
  return ['image', 'image[]', 'images'].flatMap((name) => {
    const value = body[name] ?? [];
    return Array.isArray(value) ? (value as unknown[]) : [value];
  });
}

export function countFiles(body: Body): number {
  return listFiles(body).length;
}

/** Returns the bytes of a form's file, or of a data URI in JSON. Null if there are none, as for a URL. */
export function readFileBytes(value: unknown): Buffer | null {
  if (value instanceof UploadedFile) return value.bytes;
  const url = readText(isRecord(value) ? value['image_url'] : value);
  const [, base64] = /^data:image\/[a-z+]+;base64,(.*)$/s.exec(url) ?? [];
  return base64 === undefined ? null : readBase64(base64);
}

/** Whether the value is a URL, which a vendor would fetch and the simulator does not. */
export function isLink(value: unknown): boolean {
  return isRecord(value) && readText(value['image_url']).startsWith('https://');
}
