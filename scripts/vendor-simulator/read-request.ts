import type { IncomingMessage } from 'node:http';

/** Splits a URL. Does not decode the path, because the dialect decodes model names in it. */
export function splitUrl(url: string): { readonly path: string; readonly query: URLSearchParams } {
  const [path = '/', query = ''] = url.split('?', 2);
  return { path, query: new URLSearchParams(query) };
}

/** More than any call of these dialects needs. Vendors have limits, too. */
const maxBodyBytes = 128 * 1024 * 1024;

/** Returns null if the body is longer than a vendor accepts, and stops reading it. */
export async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += (chunk as Buffer).length;
    if (length > maxBodyBytes) return null;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

/** A file in a form. */
export class UploadedFile {
  readonly fileName: string;
  readonly contentType: string;
  readonly bytes: Buffer;

  constructor(fileName: string, contentType: string, bytes: Buffer) {
    this.fileName = fileName;
    this.contentType = contentType;
    this.bytes = bytes;
  }
}

/**
 * Parses the fields of a JSON object or a form. A name that occurs several times results in an array. Returns null if
 * the body is neither. A request without a body is treated as an empty object.
 */
export async function parseBody(
  bytes: Buffer,
  contentType: string,
): Promise<Readonly<Record<string, unknown>> | null> {
  if (contentType.startsWith('multipart/form-data')) return await parseForm(bytes, contentType);
  const text = bytes.toString('utf8');
  if (text === '') {
    return {};
  }
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null && !Array.isArray(body) ? { ...body } : null;
  } catch {
    return null;
  }
}

async function parseForm(
  bytes: Buffer,
  contentType: string,
): Promise<Readonly<Record<string, unknown>> | null> {
  const fields = new Map<string, unknown[]>();
  try {
    const form = await new Response(bytes, { headers: { 'content-type': contentType } }).formData();
    for (const [name, value] of form.entries()) {
      const field = typeof value === 'string' ? value : await readFile(value);
      fields.set(name, [...(fields.get(name) ?? []), field]);
    }
  } catch {
    // Whatever is wrong with a form, vendors only report that it is not one.
    return null;
  }
  return Object.fromEntries(
    [...fields].map(([name, values]) => [name, values.length > 1 ? values : values[0]]),
  );
}

async function readFile(file: File): Promise<UploadedFile> {
  return new UploadedFile(file.name, file.type, Buffer.from(await file.arrayBuffer()));
}
