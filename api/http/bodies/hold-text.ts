import type { ApiContext } from '../request/context.ts';
import { holderOf } from '../request/holder.ts';
import type { Services } from '../../services.ts';
import { smallBodyBytes } from './body-pace.ts';
import { noMemory } from './body-errors.ts';

/**
 * Reserves memory for a text that was decoded from a body, until the response is sent. The amount is the same as for a
 * body that contains the text itself, less what is already reserved for the texts of a large body.
 * @param textBytes size of the text in a JSON body
 * @throws AppError `queue_full` if there is not enough memory now
 */
export function holdText({ requestMemory }: Services, context: ApiContext, textBytes: number): void {
  const { bodyMemory } = context.state;
  if (bodyMemory !== undefined) {
    const additional = Math.max(0, textBytes - bodyMemory.textBytes);
    if (!bodyMemory.share.tryGrow(bodyMemory.share.amount + additional)) throw noMemory();
    return;
  }
  if (textBytes <= smallBodyBytes) return;
  const { signal } = context.state;
  signal.throwIfAborted();
  const share = requestMemory.tryAcquire(holderOf(context).accountId, textBytes);
  if (share === null) throw noMemory();
  signal.addEventListener('abort', () => share.release(), { once: true });
}
