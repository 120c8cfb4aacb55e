import { AppError } from '../../shared/contract/errors.ts';
import { holderOf } from './authenticate.ts';
import { smallBodyBytes } from './body-pace.ts';
import { noMemory, tooLarge } from './parse-body.ts';
import type { ApiContext } from './request-context.ts';
import type { Services } from '../services.ts';

/**
 * Holds memory for text that is made of a body, until its request is answered: as much as the same text would if it had
 * been sent. What a large body holds for the texts in it stands for this one.
 * @param textBytes what the text takes in a JSON body
 * @param limitBytes of the operation's bodies
 * @throws AppError `payload_too_large` for more than a body may hold, `queue_full` where there is not so much memory now
 */
export function holdText(
  { requestMemory }: Services,
  context: ApiContext,
  textBytes: number,
  limitBytes: number,
): void {
  if (textBytes > limitBytes) throw tooLarge(limitBytes, 'The text of the tokens in the body');
  const { bodyMemory } = context.state;
  if (bodyMemory !== undefined) {
    const further = Math.max(0, textBytes - bodyMemory.textBytes);
    if (!bodyMemory.share.tryGrow(bodyMemory.share.amount + further)) throw noMemory();
    return;
  }
  if (textBytes <= smallBodyBytes) return;
  if (context.res.destroyed) throw new AppError('job_cancelled');
  const share = requestMemory.tryAcquire(holderOf(context).accountId, textBytes);
  if (share === null) throw noMemory();
  context.res.once('close', () => share.release());
}
