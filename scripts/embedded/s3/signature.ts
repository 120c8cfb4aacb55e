import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { S3Error } from './errors.ts';
import { readSignatureParameters } from './parse-signature.ts';
import type { SignableRequest, UnverifiedSignature } from './parse-signature.ts';
import type { NamedValue } from './parse-request.ts';

export interface SignaturePolicy {
  accessKeyId: string;
  secretAccessKey: string;
  /** Rejects any other region in the credential. If unset, every region is accepted. */
  region?: string | undefined;
  nowMs: number;
}

/** The result of a verified signature, with what is needed to verify the signatures of the request's chunks. */
export interface Authentication {
  payloadHash: string;
  timestamp: string;
  scope: string;
  signingKey: Buffer;
  signature: string;
}

export const unsignedPayload = 'UNSIGNED-PAYLOAD';

const maxSkewMs = 15 * 60_000;

/**
 * Verifies the SigV4 signature in the Authorization header or in the query.
 * @throws the S3Error that Amazon returns if it is not valid
 */
export function verifySignature(request: SignableRequest, policy: SignaturePolicy): Authentication {
  const claim = readSignatureParameters(request);
  if (request.headers.has('x-amz-security-token')) throw new S3Error('InvalidToken');
  if (claim.accessKeyId !== policy.accessKeyId) {
    throw new S3Error('InvalidAccessKeyId', { details: { AWSAccessKeyId: claim.accessKeyId } });
  }
  checkRegion(claim, policy.region);
  checkTime(claim, policy.nowMs);
  checkSignedHeaders(request, claim);

  const signingKey = deriveSigningKey(policy.secretAccessKey, claim.date, claim.region);
  const canonicalRequest = renderCanonicalRequest(request, claim.signedHeaders, claim.payloadHash);
  const scope = `${claim.date}/${claim.region}/s3/aws4_request`;
  const stringToSign = `AWS4-HMAC-SHA256\n${claim.timestamp}\n${scope}\n${hashHex(Buffer.from(canonicalRequest, 'latin1'))}`;
  const expected = signText(signingKey, stringToSign);
  if (!isSameSignature(expected, claim.signature)) {
    throw new S3Error('SignatureDoesNotMatch', {
      details: {
        AWSAccessKeyId: claim.accessKeyId,
        SignatureProvided: claim.signature,
        StringToSign: stringToSign,
        CanonicalRequest: canonicalRequest,
      },
    });
  }
  return {
    payloadHash: claim.payloadHash,
    timestamp: claim.timestamp,
    scope,
    signingKey,
    signature: expected,
  };
}

/**
 * Renders the canonical request. Each character represents a byte (latin1), which is how Node provides headers. Path
 * and query are ASCII once encoded.
 */
export function renderCanonicalRequest(
  request: SignableRequest,
  signedHeaders: readonly string[],
  payloadHash: string,
): string {
  const headerLines = signedHeaders.map((name) => {
    const value = request.headers.get(name) ?? '';
    return `${name}:${value.trim().replaceAll(/ +/g, ' ')}\n`;
  });
  return [
    request.method,
    renderCanonicalPath(request.rawPath),
    renderCanonicalQuery(request.query),
    headerLines.join(''),
    signedHeaders.join(';'),
    payloadHash,
  ].join('\n');
}

export function deriveSigningKey(secretAccessKey: string, date: string, region: string): Buffer {
  const dateKey = createHmac('sha256', `AWS4${secretAccessKey}`).update(date).digest();
  const regionKey = createHmac('sha256', dateKey).update(region).digest();
  const serviceKey = createHmac('sha256', regionKey).update('s3').digest();
  return createHmac('sha256', serviceKey).update('aws4_request').digest();
}

export function signText(signingKey: Buffer, text: string): string {
  return createHmac('sha256', signingKey).update(text).digest('hex');
}

export function hashHex(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export function isSameSignature(expected: string, provided: string): boolean {
  const expectedBytes = Buffer.from(expected, 'latin1');
  const providedBytes = Buffer.from(provided, 'latin1');
  return expectedBytes.length === providedBytes.length && timingSafeEqual(expectedBytes, providedBytes);
}

/** Percent-encodes all but RFC 3986's unreserved characters, as SigV4 requires. */
export function encodeRfc3986(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

// Unlike Amazon's other services, S3 encodes a path once and does not resolve its dots.
function renderCanonicalPath(rawPath: string): string {
  return encodeRfc3986(decodeURIComponent(rawPath)).replaceAll('%2F', '/');
}

function renderCanonicalQuery(query: readonly NamedValue[]): string {
  return query
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => [encodeRfc3986(name), encodeRfc3986(value)] as const)
    .sort(([nameA, valueA], [nameB, valueB]) => compareAscii(nameA, nameB) || compareAscii(valueA, valueB))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

function compareAscii(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function checkRegion(claim: UnverifiedSignature, region: string | undefined): void {
  if (region === undefined || claim.region === region) return;
  throw new S3Error(claim.presigned ? 'AuthorizationQueryParametersError' : 'AuthorizationHeaderMalformed', {
    message: `The credential is for the region '${claim.region}'; expecting '${region}'.`,
    details: { Region: region },
  });
}

function checkTime(claim: UnverifiedSignature, nowMs: number): void {
  const ageMs = nowMs - claim.timestampMs;
  if (claim.presigned) {
    if (ageMs < -maxSkewMs) throw new S3Error('AccessDenied', { message: 'Request is not yet valid' });
    if (ageMs < claim.expiresSeconds * 1000) return;
    throw new S3Error('AccessDenied', {
      message: 'Request has expired',
      details: {
        'X-Amz-Expires': String(claim.expiresSeconds),
        Expires: new Date(claim.timestampMs + claim.expiresSeconds * 1000).toISOString(),
        ServerTime: new Date(nowMs).toISOString(),
      },
    });
  }
  if (Math.abs(ageMs) > maxSkewMs) {
    throw new S3Error('RequestTimeTooSkewed', {
      details: {
        RequestTime: claim.timestamp,
        ServerTime: new Date(nowMs).toISOString(),
        MaxAllowedSkewMilliseconds: String(maxSkewMs),
      },
    });
  }
}

// Every x-amz header changes the meaning of the request, and an unsigned one may have been added in transit.
function checkSignedHeaders(request: SignableRequest, claim: UnverifiedSignature): void {
  const unsigned = [...request.headers.keys()].filter(
    (name) => (name === 'host' || name.startsWith('x-amz-')) && !claim.signedHeaders.includes(name),
  );
  if (unsigned.length === 0 && claim.signedHeaders.includes('host')) return;
  throw new S3Error('AccessDenied', {
    message: 'There were headers present in the request which were not signed',
    details: { HeadersNotSigned: unsigned.join(', ') },
  });
}
