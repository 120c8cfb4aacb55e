import { S3Error } from './errors.ts';
import type { ListQuery } from './object-index.ts';
import type { Operation } from './operation.ts';
import { getQueryValue } from './parse-request.ts';
import type { S3Request } from './parse-request.ts';
import { encodeRfc3986 } from './signature.ts';
import { renderDocument, renderElement, renderText } from './xml.ts';

const maxPageKeys = 1000;

/** The owner of everything. */
export const ownerContent = [renderText('ID', 'embedded'), renderText('DisplayName', 'embedded')];

export const listObjects: Operation = async ({ request, store }) => {
  if (getQueryValue(request, 'list-type') !== '2') throw new S3Error('NotImplemented');
  const bucket = store.get(request.bucket);
  const { encodingType, encode } = readEncoding(request);
  const renderOptional = (name: string, text: string | undefined) =>
    text === undefined ? '' : renderText(name, text);

  const prefix = getQueryValue(request, 'prefix') ?? '';
  const delimiter = getQueryValue(request, 'delimiter') ?? '';
  const maxKeys = readPageSize(request, 'max-keys');
  const token = getQueryValue(request, 'continuation-token');
  const startAfter = getQueryValue(request, 'start-after');
  const after = token === undefined ? startAfter && { key: startAfter } : parseToken(token);
  const page = bucket.list({ prefix, delimiter, maxKeys, after: after === '' ? undefined : after });
  const owner =
    getQueryValue(request, 'fetch-owner') === 'true' ? renderElement('Owner', ...ownerContent) : '';

  const body = renderDocument(
    'ListBucketResult',
    renderText('Name', request.bucket),
    renderText('Prefix', encode(prefix)),
    delimiter === '' ? '' : renderText('Delimiter', encode(delimiter)),
    startAfter === undefined ? '' : renderText('StartAfter', encode(startAfter)),
    renderOptional('ContinuationToken', token),
    renderOptional('NextContinuationToken', page.next && renderToken(page.next)),
    renderOptional('EncodingType', encodingType),
    renderText('KeyCount', page.contents.length + page.commonPrefixes.length),
    renderText('MaxKeys', maxKeys),
    renderText('IsTruncated', page.next !== undefined),
    ...page.contents.map(({ key, entry }) =>
      renderElement(
        'Contents',
        renderText('Key', encode(key)),
        renderText('LastModified', new Date(entry.lastModifiedMs).toISOString()),
        renderText('ETag', `"${entry.etag}"`),
        renderText('Size', entry.size),
        owner,
        renderText('StorageClass', 'STANDARD'),
      ),
    ),
    ...page.commonPrefixes.map((commonPrefix) =>
      renderElement('CommonPrefixes', renderText('Prefix', encode(commonPrefix))),
    ),
  );
  return { status: 200, body };
};

/** Reads how a listing's keys are to be encoded. */
export function readEncoding(request: S3Request): {
  encodingType: string | undefined;
  encode: (text: string) => string;
} {
  const encodingType = getQueryValue(request, 'encoding-type');
  if (encodingType !== undefined && encodingType !== 'url') {
    throw new S3Error('InvalidArgument', { message: 'Invalid Encoding Method specified in Request' });
  }
  return {
    encodingType,
    encode: (text) => (encodingType === undefined ? text : encodeRfc3986(text).replaceAll('%2F', '/')),
  };
}

/** Reads how many entries a page of a listing may have; at most 1000. */
export function readPageSize(request: S3Request, name: string): number {
  const text = getQueryValue(request, name);
  if (text === undefined || text === '') return maxPageKeys;
  if (!/^\d{1,9}$/.test(text)) {
    throw new S3Error('InvalidArgument', { message: `Argument ${name} must be a non-negative integer` });
  }
  return Math.min(Number(text), maxPageKeys);
}

// If a page ends with a common prefix, the next one must not start with a key inside it.
function renderToken(after: NonNullable<ListQuery['after']>): string {
  const text = 'key' in after ? `k${after.key}` : `p${after.commonPrefix}`;
  return Buffer.from(text).toString('base64url');
}

function parseToken(token: string): ListQuery['after'] {
  const text = Buffer.from(token, 'base64url').toString('utf8');
  const isOurs = Buffer.from(text).toString('base64url') === token;
  if (isOurs && text.startsWith('k')) return { key: text.slice(1) };
  if (isOurs && text.startsWith('p')) return { commonPrefix: text.slice(1) };
  throw new S3Error('InvalidArgument', { message: 'The continuation token provided is incorrect' });
}
