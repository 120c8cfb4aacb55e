import type { IncomingMessage } from 'node:http';
import { S3Error } from './errors.ts';

export type NamedValue = readonly [name: string, value: string];

export interface S3Request {
  method: string;
  /** The path as sent, without the query. The signature is computed from it. */
  rawPath: string;
  /** Empty for the service itself. */
  bucket: string;
  /** Empty for a bucket. May be any text, including `..` and slashes, and is never used as a path. */
  key: string;
  query: readonly NamedValue[];
  /** By lower-case name. A header sent several times is joined with commas, as the signature requires. */
  headers: ReadonlyMap<string, string>;
}

const maxKeyBytes = 1024;

// If these were sent twice, the executed request could differ from the signed one.
const singleHeaders = new Set([
  'authorization',
  'content-length',
  'content-md5',
  'content-type',
  'host',
  'range',
  'x-amz-content-sha256',
  'x-amz-date',
  'x-amz-decoded-content-length',
]);

export function parseRequest(message: IncomingMessage): S3Request {
  const target = message.url ?? '';
  if (!target.startsWith('/')) throw new S3Error('InvalidURI');
  const queryStart = target.indexOf('?');
  const rawPath = queryStart === -1 ? target : target.slice(0, queryStart);
  const rawQuery = queryStart === -1 ? '' : target.slice(queryStart + 1);
  const keyStart = rawPath.indexOf('/', 1);
  const rawBucket = keyStart === -1 ? rawPath.slice(1) : rawPath.slice(1, keyStart);
  const key = keyStart === -1 ? '' : decodeComponent(rawPath.slice(keyStart + 1));
  if (Buffer.byteLength(key) > maxKeyBytes) {
    throw new S3Error('KeyTooLongError', { details: { MaxSizeAllowed: String(maxKeyBytes) } });
  }
  return {
    method: message.method ?? '',
    rawPath,
    bucket: decodeComponent(rawBucket),
    key,
    query: parseQuery(rawQuery),
    headers: collectHeaders(message.headersDistinct),
  };
}

export function parseQuery(rawQuery: string): NamedValue[] {
  return rawQuery
    .split('&')
    .filter((part) => part !== '')
    .map((part) => {
      const equals = part.indexOf('=');
      const name = equals === -1 ? part : part.slice(0, equals);
      const value = equals === -1 ? '' : part.slice(equals + 1);
      return [
        decodeComponent(name.replaceAll('+', ' ')),
        decodeComponent(value.replaceAll('+', ' ')),
      ] as const;
    });
}

export function getQueryValue(request: Pick<S3Request, 'query'>, name: string): string | undefined {
  return request.query.find(([candidate]) => candidate === name)?.[1];
}

function collectHeaders(headers: NodeJS.Dict<string[]>): Map<string, string> {
  const collected = new Map<string, string>();
  for (const [name, values] of Object.entries(headers)) {
    if (values === undefined) continue;
    if (values.length > 1 && singleHeaders.has(name)) {
      throw new S3Error('InvalidRequest', { message: `The header ${name} must be sent only once.` });
    }
    collected.set(name, values.map((value) => value.trim()).join(','));
  }
  return collected;
}

function decodeComponent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    throw new S3Error('InvalidURI', { cause: error });
  }
}
