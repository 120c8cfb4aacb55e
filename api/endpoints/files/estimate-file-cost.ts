import { isBatchEndpoint, type BatchEndpoint } from '../../../shared/contract/batch-terms.ts';
import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import { toRubNumber } from '../../../shared/encoding/money.ts';
import { estimateFile, type ModelEstimate } from '../../../shared/work/files/estimate-file.ts';
import type { FileVerdict } from '../../../shared/work/files/file-verdict.ts';
import type { FileCostEstimate } from '../../contract/batch-files.ts';
import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import { findFile } from './find-file.ts';

export const estimateFileCost = defineEndpoint(
  operations.estimateFileCost,
  [authenticateAccount, limitCalls],
  (services) => async (context) => {
    const { id, verdict } = await findFile(services, context);
    if (verdict === null)
      throw invalidField(['path', 'file_id'], 'Only files with the purpose "batch" can be estimated.');
    checkFaults(verdict);
    const endpoint = context.state.query.endpoint ?? findEndpoint(verdict);
    const estimate = estimateFile(verdict, endpoint, services.catalog);
    const body: FileCostEstimate = {
      file_id: id,
      endpoint,
      total_requests: estimate.lines,
      total_estimated_input_tokens: estimate.inputTokens,
      total_estimated_output_tokens: estimate.outputTokens,
      total_estimated_cost: toRubNumber(estimate.costNano),
      models: estimate.models.map(presentModel),
    };
    context.body = body;
  },
);

function presentModel(estimate: ModelEstimate): FileCostEstimate['models'][number] {
  const { model, lines, inputTokens, outputTokens, costNano, error } = estimate;
  return {
    model,
    request_count: lines,
    estimated_input_tokens: inputTokens,
    estimated_output_tokens: outputTokens,
    estimated_cost: toRubNumber(costNano),
    ...(error === null ? {} : { error: error.message }),
  };
}

/** @throws AppError if a batch of the file would fail at once */
function checkFaults({ faults }: FileVerdict): void {
  const [first] = faults;
  if (first === undefined) return;
  const where = first.line === null ? '' : `, line ${first.line}`;
  throw new AppError('validation_failed', {
    message: `A batch cannot run this file${where}: ${first.message}`,
    issues: faults.map(({ line, message, code }) => ({
      loc: ['path', 'file_id', ...(line === null ? [] : [line])],
      msg: message,
      type: code,
    })),
  });
}

/** @throws AppError if the lines do not name exactly one endpoint */
function findEndpoint({ urls }: FileVerdict): BatchEndpoint {
  const [first] = urls;
  if (urls.length === 1 && first !== undefined && isBatchEndpoint(first.url)) return first.url;
  const msg = 'is required, because the lines of the file do not name one endpoint of batches';
  throw invalidField(['query', 'endpoint'], msg, { type: 'missing' });
}
