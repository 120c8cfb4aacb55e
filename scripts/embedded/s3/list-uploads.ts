import { ownerContent, readEncoding, readPageSize } from './list-objects.ts';
import { compareUtf8 } from './object-index.ts';
import type { Operation } from './operation.ts';
import { getQueryValue } from './parse-request.ts';
import type { UploadEntry } from './upload-store.ts';
import { renderDocument, renderElement, renderText } from './xml.ts';

interface UploadQuery {
  prefix: string;
  /** Empty for none. */
  delimiter: string;
  /** Lists only uploads of keys after this one, and those of this key whose id is after the other marker. */
  keyMarker: string;
  /** Empty for none. */
  idMarker: string;
  maxUploads: number;
}

interface UploadPage {
  uploads: UploadEntry[];
  commonPrefixes: string[];
  /** The markers of the next page. Undefined on the last page. */
  next?: { keyMarker: string; idMarker: string } | undefined;
}

export const listUploads: Operation = async ({ request, store }) => {
  const bucket = store.get(request.bucket);
  const { encodingType, encode } = readEncoding(request);
  const keyMarker = getQueryValue(request, 'key-marker') ?? '';
  const query = {
    prefix: getQueryValue(request, 'prefix') ?? '',
    delimiter: getQueryValue(request, 'delimiter') ?? '',
    keyMarker,
    // Without a key, S3 ignores this marker.
    idMarker: keyMarker === '' ? '' : (getQueryValue(request, 'upload-id-marker') ?? ''),
    maxUploads: readPageSize(request, 'max-uploads'),
  };
  const page = choosePage(bucket.uploads.list(compareUtf8), query);
  const body = renderDocument(
    'ListMultipartUploadsResult',
    renderText('Bucket', request.bucket),
    renderText('KeyMarker', encode(keyMarker)),
    renderText('UploadIdMarker', query.idMarker),
    page.next === undefined ? '' : renderText('NextKeyMarker', encode(page.next.keyMarker)),
    page.next === undefined ? '' : renderText('NextUploadIdMarker', page.next.idMarker),
    renderText('Prefix', encode(query.prefix)),
    query.delimiter === '' ? '' : renderText('Delimiter', encode(query.delimiter)),
    encodingType === undefined ? '' : renderText('EncodingType', encodingType),
    renderText('MaxUploads', query.maxUploads),
    renderText('IsTruncated', page.next !== undefined),
    ...page.uploads.map(({ key, id, initiatedAtMs }) =>
      renderElement(
        'Upload',
        renderText('Key', encode(key)),
        renderText('UploadId', id),
        renderElement('Initiator', ...ownerContent),
        renderElement('Owner', ...ownerContent),
        renderText('StorageClass', 'STANDARD'),
        renderText('Initiated', new Date(initiatedAtMs).toISOString()),
      ),
    ),
    ...page.commonPrefixes.map((commonPrefix) =>
      renderElement('CommonPrefixes', renderText('Prefix', encode(commonPrefix))),
    ),
  );
  return { status: 200, body };
};

/** @param all ordered by key and then by id; there are few, so every page is chosen from all of them */
function choosePage(all: readonly UploadEntry[], query: UploadQuery): UploadPage {
  const page: UploadPage = { uploads: [], commonPrefixes: [] };
  let last: UploadPage['next'];
  for (const upload of all) {
    const { key, id } = upload;
    if (!key.startsWith(query.prefix) || !isAfterMarkers(upload, query)) continue;
    const end = query.delimiter === '' ? -1 : key.indexOf(query.delimiter, query.prefix.length);
    const commonPrefix = end === -1 ? undefined : key.slice(0, end + query.delimiter.length);
    // It was on an earlier page, or is already on this one.
    const isListed =
      commonPrefix !== undefined &&
      (commonPrefix === query.keyMarker || commonPrefix === page.commonPrefixes.at(-1));
    if (isListed) continue;
    if (page.uploads.length + page.commonPrefixes.length >= query.maxUploads) {
      page.next = last;
      return page;
    }
    if (commonPrefix === undefined) {
      page.uploads.push(upload);
      last = { keyMarker: key, idMarker: id };
    } else {
      page.commonPrefixes.push(commonPrefix);
      last = { keyMarker: commonPrefix, idMarker: '' };
    }
  }
  return page;
}

function isAfterMarkers({ key, id }: UploadEntry, { keyMarker, idMarker }: UploadQuery): boolean {
  const order = compareUtf8(key, keyMarker);
  return order > 0 || (order === 0 && idMarker !== '' && id > idMarker);
}
