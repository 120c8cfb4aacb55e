import type { AdmittedRequest } from '../../../shared/money/admitted-request.ts';
import { toAppError } from '../../../shared/contract/errors.ts';
import { operations } from '../../contract/operations.ts';
import { chooseLane } from '../../../shared/work/queue/fair-share.ts';
import { noChannel } from '../../../shared/work/queue/job-kinds.ts';
import { decodeResult } from '../../../shared/work/replies/result.ts';
import { admit, type Admitted, type Attached } from '../../admission/admit.ts';
import type { AwaitedJob } from '../../requests/dispatch/job-dispatcher.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { noteRejections } from '../../http/middleware/note-rejections.ts';
import { parseBody } from '../../http/middleware/parse-body.ts';
import { readModelRequestOptions } from '../../http/middleware/read-model-request-options.ts';
import { presentImages } from '../../../shared/responses/present-images.ts';
import { SseStream } from '../../requests/replies/sse-stream.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { rejectAsyncStream } from '../../http/request/model-request-options.ts';
import type { Services } from '../../services.ts';
import { awaitResponse } from '../../responses/await-response.ts';
import type {
  AnyImageRequest,
  CheckedImageRequest,
  ImageOperation,
} from '../../../shared/preparing/images/check-image-request.ts';
import { createImageJob, prepareImages } from '../../../shared/preparing/images/prepare-images.ts';
import { createPrepareOptions } from '../prepare-options.ts';
import { createFileLinks } from '../../../shared/responses/file-links.ts';
import { awaitJob } from '../../responses/await-job.ts';
import { respondAsync } from '../../responses/respond-async.ts';
import { sendBody } from '../../responses/send-body.ts';
import { streamResponse } from '../../responses/stream-response.ts';

const jobOperations = { createImage: 'images.generations', editImage: 'images.edits' } as const;

/** Generations and edits differ only in their inputs. */
const createImages =
  (operation: ImageOperation) =>
  (services: Services) =>
  async (context: ApiContext & { readonly state: { readonly body: AnyImageRequest } }): Promise<void> => {
    const { body } = context.state;
    rejectAsyncStream(context);
    const options = createPrepareOptions(services, context);
    const { estimate, job: checked } = await prepareImages(services, operation, body, options);
    const admitted = await admit(services, context, estimate);
    const createWork = ({ request }: Admitted) => ({
      operation: jobOperations[operation],
      job: createImageJob(checked, request, noChannel),
      format: null,
    });
    if (await respondAsync(services, context, admitted, createWork)) return;
    const call = { services, context, checked, admitted };
    if (checked.partialImages === null) await sendResponse(call);
    else await streamImages(call);
  };

const steps = [authenticateAccount, noteRejections, readModelRequestOptions, awaitJob, parseBody];

export const createImage = defineEndpoint(operations.createImage, steps, createImages('createImage'));

export const editImage = defineEndpoint(operations.editImage, steps, createImages('editImage'));

interface ImageCall {
  readonly services: Services;
  readonly context: ApiContext;
  readonly checked: CheckedImageRequest;
  readonly admitted: Admitted | Attached;
}

async function sendResponse({ services, context, checked, admitted }: ImageCall): Promise<void> {
  const { jobs } = services;
  const job =
    admitted.outcome === 'attached'
      ? jobs.attach(admitted, context.res)
      : enqueue(services, jobs.await(admitted.request, 'image', context.res), admitted.request, checked);
  const { bytes, release } = await awaitResponse(job, context.state.signal);
  try {
    const { header, body: images } = decodeResult(bytes, 'image');
    const links = createFileLinks(services.publicUrl, services.config.s3.publicUrl);
    await sendBody(context, presentImages(admitted.requestId, header, images, links));
  } finally {
    release();
  }
}

async function streamImages({ services, context, checked, admitted }: ImageCall): Promise<void> {
  const { jobs } = services;
  const stream = new SseStream(context.res, context.state.signal, {
    firstCommentMs: services.firstCommentMs,
  });
  await streamResponse(context, stream, async () =>
    admitted.outcome === 'attached'
      ? jobs.attachStream(admitted, stream)
      : enqueue(services, jobs.stream(admitted.request, 'image', stream), admitted.request, checked),
  );
}

/** Enqueues the job once its account may dispatch it. */
function enqueue<T extends Pick<AwaitedJob, 'whenDisconnected' | 'whenEnded' | 'markQueued' | 'fail'>>(
  { jobs, images, bulkShares }: Services,
  dispatched: T,
  request: AdmittedRequest,
  checked: CheckedImageRequest,
): T {
  // Earlier jobs of an account run first. Jobs of an account with few jobs run before those of one with many, so that
  // they are not delayed.
  const inFlight = jobs.countOf('image', request.accountId) - 1;
  const lane = chooseLane(inFlight + 1);
  dispatched.whenDisconnected(() => images[lane].dropPayload(request.requestId));
  const add = async (): Promise<void> => {
    if (lane === 'bulk') {
      const ended = new AbortController();
      dispatched.whenEnded(() => ended.abort());
      await bulkShares.enter('image', request, ended.signal).granted;
    }
    if (!dispatched.markQueued()) return;
    const job = createImageJob(checked, request, jobs.replyChannel);
    await images[lane].add(request.requestId, job, inFlight);
  };
  add().catch((error: unknown) => {
    dispatched.fail(toAppError(error));
  });
  return dispatched;
}
