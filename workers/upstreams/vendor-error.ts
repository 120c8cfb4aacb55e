import { shorten } from '../../shared/runtime/shorten.ts';
import { cleanVendorText } from './http-failure.ts';
import { UpstreamError, type UpstreamFailure } from './upstream.ts';

const maxNameChars = 100;

/** What a status means for routing, unless the vendor's own code says otherwise. */
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
  /** As the vendor wrote it: cleaned here. */
  readonly message: string;
  readonly apiKey: string | null;
  readonly retryAfterMs: number | null;
}

/** A vendor's refusal in our words, without secrets and of one bounded line. */
export function createVendorError(parts: VendorErrorParts): UpstreamError {
  const { failure, status, retryAfterMs, name, apiKey } = parts;
  const vendorCode = name === null ? null : shorten(cleanVendorText(name, apiKey), maxNameChars);
  return new UpstreamError(failure, describe(parts), { status, retryAfterMs, vendorCode });
}

function describe({ failure, status, name, message, apiKey }: VendorErrorParts): string {
  const text = cleanVendorText(message, apiKey);
  const label = name === null ? '' : ` (${shorten(cleanVendorText(name, apiKey), maxNameChars)})`;
  const head = `the upstream answered ${status}${label}`;
  if (failure === 'auth') {
    // Vendors like to repeat the key here, in shapes that no redaction foresees: status and code say enough.
    return head;
  }
  // A caller who sees why the request was refused needs the vendor's words alone.
  const isOfRequest = failure === 'rejected' || failure === 'missing';
  return isOfRequest && text !== '' ? text : text === '' ? head : `${head}: ${text}`;
}

/** The JSON of a refusal's body; null for a proxy's HTML page, or a body longer than we read. */
export function parseErrorBody(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return null;
  }
}
