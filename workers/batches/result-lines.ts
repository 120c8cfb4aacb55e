import { errorKinds } from '../../shared/contract/error-kinds.ts';
import type { RefusalCode } from '../../shared/work/batches/batch-record.ts';

/** Identifies a line in the files with results. */
export interface LineId {
  /** `batch_req_` and characters that no other line has. */
  readonly id: string;
  readonly customId: string;
}

const newline = Buffer.from('}\n');

/**
 * Writes a line whose request was answered, as in OpenAI's result files.
 * @param body JSON, in pieces
 */
export function writeAnswer({ id, customId }: LineId, status: number, body: readonly Buffer[]): Buffer[] {
  const names = `"id":"${id}","custom_id":${JSON.stringify(customId)}`;
  const response = `"response":{"status_code":${status},"request_id":"${id}","body":`;
  return [Buffer.from(`{${names},${response}`), ...body, Buffer.from('},"error":null'), newline];
}

/** Writes a line that was not run. */
export function writeRefusal({ id, customId }: LineId, code: RefusalCode): Buffer[] {
  const error = { code, message: refusals[code] };
  return [Buffer.from(`${JSON.stringify({ id, custom_id: customId, response: null, error })}\n`)];
}

const refusals: Readonly<Record<RefusalCode, string>> = {
  insufficient_balance:
    'The balance, or the max_cost of the batch, was used up before this line ran. It was not charged. Refill the ' +
    'balance, and retry the batch.',
  batch_cancelled: 'The batch was cancelled before this line ran. It was not charged.',
  batch_expired: 'The batch expired before this line ran. It was not charged.',
  account_banned: errorKinds.account_banned.en,
};
