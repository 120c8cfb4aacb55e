import type { JobOperation } from '../contract/job-terms.ts';
import { decodeResult } from '../work/replies/result.ts';
import { withCost } from './chat-cost.ts';
import type { ChunkedBody } from './chunked-body.ts';
import { presentEmbeddings } from './present-embeddings.ts';
import { presentImages } from './present-images.ts';

/** A settled request whose worker has sent or stored its response. */
export interface SettledRequest {
  readonly requestId: string;
  readonly operation: JobOperation;
  /** The model's id. */
  readonly model: string;
  /** For embeddings: how vectors are written. */
  readonly format: string | null;
  /** What was charged. A stored response may show the cost that was known before its settlement. */
  readonly receipt: { readonly costNano: bigint; readonly free: boolean };
}

/**
 * Returns the JSON that the caller of a request gets, from the response as its worker has sent or stored it.
 * @param bytes of the whole response; the body refers to them
 * @param linkOf returns the URL of a stored file
 */
export function presentResponse(
  { requestId, operation, model, format, receipt }: SettledRequest,
  bytes: Buffer,
  linkOf: (objectKey: string) => string,
): Buffer | ChunkedBody {
  const charge = { costNano: String(receipt.costNano), free: receipt.free };
  if (operation === 'chat.completions') return withCost(bytes, receipt.costNano);
  if (operation === 'embeddings') {
    const { header, body } = decodeResult(bytes, 'embedding');
    const response = { requestId, model, header: { ...header, ...charge }, vectors: body };
    return presentEmbeddings({ ...response, format: format === 'base64' ? 'base64' : 'float' });
  }
  const { header, body } = decodeResult(bytes, 'image');
  return presentImages(requestId, { ...header, ...charge }, body, linkOf);
}
