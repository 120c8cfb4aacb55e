import { S3Error } from './errors.ts';
import { getQueryValue } from './parse-request.ts';
import type { S3Request } from './parse-request.ts';

/** The parts of an S3Request that a signature is computed from. */
export type SignableRequest = Pick<S3Request, 'method' | 'rawPath' | 'query' | 'headers'>;

/** The signature of a request and its parameters, well-formed but not yet verified. */
export interface UnverifiedSignature {
  presigned: boolean;
  accessKeyId: string;
  /** The credential's day, as yyyymmdd. */
  date: string;
  region: string;
  signedHeaders: readonly string[];
  signature: string;
  timestamp: string;
  timestampMs: number;
  payloadHash: string;
  /** Zero unless presigned. */
  expiresSeconds: number;
}

const algorithm = 'AWS4-HMAC-SHA256';
const maxExpiresSeconds = 604_800;

type MalformedCode = 'AuthorizationHeaderMalformed' | 'AuthorizationQueryParametersError';

export function readSignatureParameters(request: SignableRequest): UnverifiedSignature {
  const header = request.headers.get('authorization');
  const inQuery = request.query.some(([name]) => name === 'X-Amz-Algorithm' || name === 'X-Amz-Signature');
  if (header !== undefined && inQuery) {
    throw new S3Error('InvalidArgument', { message: 'Only one auth mechanism allowed' });
  }
  if (header !== undefined) return readHeaderSignature(request, header);
  if (inQuery) return readQuerySignature(request);
  throw new S3Error('AccessDenied');
}

function readHeaderSignature(request: SignableRequest, header: string): UnverifiedSignature {
  const [scheme = '', ...parameters] = header.split(' ');
  if (scheme !== algorithm) {
    throw new S3Error('InvalidRequest', {
      message: `The authorization mechanism you have provided is not supported. Please use ${algorithm}.`,
    });
  }
  const fields = new Map<string, string>();
  for (const part of parameters.join(' ').split(',')) {
    const [name = '', ...value] = part.trim().split('=');
    if (fields.has(name)) throw new S3Error('AuthorizationHeaderMalformed');
    fields.set(name, value.join('='));
  }
  const timestamp = request.headers.get('x-amz-date');
  if (timestamp === undefined) {
    throw new S3Error('AccessDenied', {
      message: 'AWS authentication requires a valid Date or x-amz-date header',
    });
  }
  const payloadHash = request.headers.get('x-amz-content-sha256');
  if (payloadHash === undefined) {
    throw new S3Error('InvalidRequest', {
      message: 'Missing required header for this request: x-amz-content-sha256',
    });
  }
  return {
    presigned: false,
    expiresSeconds: 0,
    payloadHash,
    ...readSignature('AuthorizationHeaderMalformed', {
      credential: fields.get('Credential'),
      signedHeaders: fields.get('SignedHeaders'),
      signature: fields.get('Signature'),
      timestamp,
    }),
  };
}

function readQuerySignature(request: SignableRequest): UnverifiedSignature {
  const names = request.query.map(([name]) => name).filter((name) => name.startsWith('X-Amz-'));
  if (new Set(names).size !== names.length || getQueryValue(request, 'X-Amz-Algorithm') !== algorithm) {
    throw new S3Error('AuthorizationQueryParametersError', {
      message: `X-Amz-Algorithm only supports "${algorithm}", and each parameter must be sent once.`,
    });
  }
  if (names.includes('X-Amz-Security-Token')) throw new S3Error('InvalidToken');
  const expires = getQueryValue(request, 'X-Amz-Expires') ?? '';
  if (!/^\d{1,10}$/.test(expires) || Number(expires) > maxExpiresSeconds || Number(expires) < 1) {
    throw new S3Error('AuthorizationQueryParametersError', {
      message: `X-Amz-Expires must be a number of seconds from 1 to ${String(maxExpiresSeconds)} (a week)`,
    });
  }
  return {
    presigned: true,
    expiresSeconds: Number(expires),
    // A presigned link is created before its body is known, so the payload is unsigned unless the link specifies it.
    payloadHash:
      request.headers.get('x-amz-content-sha256') ??
      getQueryValue(request, 'X-Amz-Content-Sha256') ??
      'UNSIGNED-PAYLOAD',
    ...readSignature('AuthorizationQueryParametersError', {
      credential: getQueryValue(request, 'X-Amz-Credential'),
      signedHeaders: getQueryValue(request, 'X-Amz-SignedHeaders'),
      signature: getQueryValue(request, 'X-Amz-Signature'),
      timestamp: getQueryValue(request, 'X-Amz-Date') ?? '',
    }),
  };
}

interface RawSignature {
  credential: string | undefined;
  signedHeaders: string | undefined;
  signature: string | undefined;
  timestamp: string;
}

function readSignature(malformed: MalformedCode, raw: RawSignature) {
  const credential = /^(.+)\/(\d{8})\/([\w-]+)\/s3\/aws4_request$/.exec(raw.credential ?? '');
  const [, accessKeyId, date, region] = credential ?? [];
  if (accessKeyId === undefined || date === undefined || region === undefined) {
    throw new S3Error(malformed, {
      message: 'The credential must have the form <access key>/<yyyymmdd>/<region>/s3/aws4_request.',
    });
  }
  const signature = raw.signature ?? '';
  const signedHeaders = (raw.signedHeaders ?? '').split(';');
  const isSorted = signedHeaders.every(
    (name, index) => index === 0 || (signedHeaders[index - 1] ?? '') < name,
  );
  if (
    !/^[\da-f]{64}$/.test(signature) ||
    !isSorted ||
    signedHeaders.some((name) => name !== name.toLowerCase())
  ) {
    throw new S3Error(malformed, {
      message: 'SignedHeaders must be sorted lower-case names, and Signature 64 hexadecimal digits.',
    });
  }
  const timestampMs = parseTimestamp(raw.timestamp);
  if (Number.isNaN(timestampMs) || !raw.timestamp.startsWith(date)) {
    throw new S3Error(malformed, {
      message: 'The date must have the form yyyymmddThhmmssZ and match the day in the credential.',
    });
  }
  return { accessKeyId, date, region, signedHeaders, signature, timestamp: raw.timestamp, timestampMs };
}

function parseTimestamp(timestamp: string): number {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(timestamp) ?? [];
  if (second === undefined) return Number.NaN;
  return Date.parse(`${year ?? ''}-${month ?? ''}-${day ?? ''}T${hour ?? ''}:${minute ?? ''}:${second}Z`);
}
