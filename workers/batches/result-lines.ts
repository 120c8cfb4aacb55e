import { errorKinds } from '../../shared/contract/error-kinds.ts';
import type { RefusalCode } from '../../shared/work/batches/batch-record.ts';

/** Why a line is not run. */
export type LineRefusal = RefusalCode | 'model_not_allowed';

/** Identifies a line in the files with results. */
export interface LineId {
  /** `batch_req_` and characters that no other line has. */
  readonly id: string;
  readonly customId: string;
}

/** What is written before the body of a response, as in OpenAI's result files, and after it. */
export function writeAround({ id, customId }: LineId, status: number): { head: string; tail: string } {
  const names = `"id":"${id}","custom_id":${JSON.stringify(customId)}`;
  const response = `"response":{"status_code":${status},"request_id":"${id}","body":`;
  return { head: `{${names},${response}`, tail: '},"error":null}\n' };
}

/**
 * Writes a line whose request was answered.
 * @param body JSON, in pieces
 */
export function writeAnswer(line: LineId, status: number, body: readonly Buffer[]): Buffer[] {
  const { head, tail } = writeAround(line, status);
  return [Buffer.from(head), ...body, Buffer.from(tail)];
}

/** Writes a line that was not run. */
export function writeRefusal({ id, customId }: LineId, code: LineRefusal): Buffer[] {
  const error = { code, message: refusals[code] };
  return [Buffer.from(`${JSON.stringify({ id, custom_id: customId, response: null, error })}\n`)];
}

const refusals: Readonly<Record<LineRefusal, string>> = {
  insufficient_balance:
    'The balance, or the max_cost of the batch, was used up before this line ran. It was not charged. Refill the ' +
    'balance if it was too low, and retry the batch. A retry has the same max_cost.',
  budget_exceeded:
    'The budget of the account was used up before this line ran. It was not charged. Retry the batch when the budget has ' +
    'reset or was raised.',
  key_expired: 'The API key expired before this line ran. It was not charged.',
  model_not_allowed: 'This account may not use the model of this line. It was not charged.',
  batch_cancelled: 'The batch was cancelled before this line ran. It was not charged.',
  batch_expired: 'The batch expired before this line ran. It was not charged.',
  input_lost: 'The input file of the batch was lost before this line ran. It was not charged.',
  account_banned: errorKinds.account_banned.en,
};
