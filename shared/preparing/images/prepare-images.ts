import type { AdmittedRequest } from '../../money/admitted-request.ts';
import type { ImageJob } from '../../work/queue/job-kinds.ts';
import { findModel } from '../find-model.ts';
import { createCountingTurn, type ModelCatalog, type Prepared, type PrepareOptions } from '../preparation.ts';
import { modelOperations } from '../validate-body.ts';
import {
  checkImageRequest,
  type AnyImageRequest,
  type CheckedImageRequest,
  type ImageOperation,
} from './check-image-request.ts';
import { estimateImages } from './estimate-images.ts';

/**
 * Prepares an image request for admission.
 * @param body valid according to the operation's schema
 * @throws AppError `model_not_found`, `model_disabled`, `validation_failed`, `content_too_long`; the errors of the
 * checks; the signal's reason
 */
export async function prepareImages(
  { catalog }: { readonly catalog: ModelCatalog },
  operation: ImageOperation,
  body: AnyImageRequest,
  options: PrepareOptions,
): Promise<Prepared<CheckedImageRequest>> {
  const model = findModel(catalog, body.model, modelOperations[operation].modelTypes);
  const checked = checkImageRequest(body, model, operation);
  await options.checkEarly?.(model, false);
  const turn = createCountingTurn(options, model);
  const estimate = await estimateImages(checked, model, body.user ?? null, turn);
  return { model, estimate, job: checked };
}

/** Creates the job of an admitted image request. */
export const createImageJob = (
  checked: CheckedImageRequest,
  request: AdmittedRequest,
  replyChannel: string,
): ImageJob => ({ v: 1, kind: 'image', request, replyChannel, ...checked });
