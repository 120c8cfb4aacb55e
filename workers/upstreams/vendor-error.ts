import { shorten } from '../../shared/platform/runtime/shorten.ts';
import { cleanVendorText } from './http-failure.ts';
import { UpstreamError, type UpstreamFailure } from './upstream.ts';

const maxNameChars = 100;

/** Classifies a status for routing. The vendor's error code may override it. */
export function classifyStatus(status: number): UpstreamFailure {
  switch (status) {
    case 400:
    case 413:
    case 422:
      return 'rejected';
    case 404:
      return 'missing';
    case 401:
    case 402:
    case 403:
      return 'auth';
    case 429:
      return 'rate_limited';
    case 408:
    case 504:
      return 'timeout';
    default:
      return 'unavailable';
  }
}

export interface VendorErrorParts {
  readonly failure: UpstreamFailure;
  readonly status: number;
  /** The vendor's code or type, such as `invalid_request_error`. */
  readonly name: string | null;
  /** The vendor's unmodified message; it is cleaned here. */
  readonly message: string;
  readonly apiKey: string | null;
  readonly retryAfterMs: number | null;
}

/** Creates the error for a vendor's error response. Its message is one line of limited length, without secrets. */
export function createVendorError(parts: VendorErrorParts): UpstreamError {
  const { failure, status, retryAfterMs, name, apiKey } = parts;
  const vendorCode = name === null ? null : shorten(cleanVendorText(name, apiKey), maxNameChars);
  return new UpstreamError(failure, describe(parts), { status, retryAfterMs, vendorCode });
}

function describe({ failure, status, name, message, apiKey }: VendorErrorParts): string {
  const text = cleanVendorText(message, apiKey);
  const label = name === null ? '' : ` (${shorten(cleanVendorText(name, apiKey), maxNameChars)})`;
  const head = `the upstream responded with ${status}${label}`;
  if (failure === 'auth') {
    // Vendors often include the key here, in forms that redaction may miss. Status and code are enough.
    return head;
  }
  // Callers see this message if the request was rejected; they only need the vendor's text.
  const isRequestFailure = failure === 'rejected' || failure === 'missing';
  return isRequestFailure && text !== '' ? text : text === '' ? head : `${head}: ${text}`;
}

/** Parses the JSON of an error body. Returns null if it is not JSON, such as a proxy's HTML page, or was cut off. */
export function parseErrorBody(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return null;
  }
}
