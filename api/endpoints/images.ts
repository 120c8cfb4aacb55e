import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { toAppError } from '../../shared/contract/errors.ts';
import { operations } from '../../shared/contract/operations.ts';
import { chooseLane } from '../../shared/queue/fair-share.ts';
import type { AdmittedRequest, ImageJob } from '../../shared/queue/job-kinds.ts';
import { noChannel } from '../../shared/reply/reply-channel.ts';
import { decodeResult } from '../../shared/reply/result.ts';
import type { AwaitedJob, StreamedJob } from '../dispatch/dispatch-job.ts';
import { admit, type Admitted, type Attached } from '../middleware/admit.ts';
import { preAdmitDoubtful, precheckBalance } from '../middleware/pre-admit.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { presentImages } from '../present/images.ts';
import { SseStream } from '../present/sse-stream.ts';
import type { Services } from '../services.ts';
import { cancelWhenGone } from './cancel-when-gone.ts';
import {
  checkImageRequest,
  type AnyImageRequest,
  type CheckedImageRequest,
  type ImageOperation,
} from './check-image-request.ts';
import { createCountingTurn } from './counting-turn.ts';
import { estimateImages } from './estimate-images.ts';
import { createFileLinks } from './file-links.ts';
import { findModel } from './find-model.ts';
import { respondAsync } from './respond-async.ts';
import { sendBody } from './send-body.ts';

const jobOperations = { createImage: 'images.generations', editImage: 'images.edits' } as const;

/** Serves generations and edits, which differ in what they must be sent. */
export function createImages(services: Services, operation: ImageOperation) {
  return async (context: ApiContext): Promise<void> => {
    const body = context.state.body as AnyImageRequest;
    const model = findModel(services, body.model, operations[operation].modelTypes);
    const checked = checkImageRequest(body, model, operation);
    const admitted = await admitImages(services, context, model, checked);
    const createWork = ({ request }: Admitted) => ({
      operation: jobOperations[operation],
      job: createJob(request, checked, noChannel),
      format: null,
    });
    if (await respondAsync(services, context, admitted, createWork)) return;
    const call = { services, context, checked, admitted };
    if (checked.partialImages === null) await sendAnswer(call);
    else await streamAnswer(call);
  };
}

async function admitImages(
  services: Services,
  context: ApiContext,
  model: CatalogModel,
  checked: CheckedImageRequest,
): Promise<Admitted | Attached> {
  precheckBalance(context, model);
  await preAdmitDoubtful(services, context, model);
  const { user } = context.state.body as AnyImageRequest;
  const turn = createCountingTurn(services, context, model);
  return await admit(services, context, await estimateImages(checked, model, user ?? null, turn));
}

/** One admitted call, as it is answered. */
interface ImageCall {
  readonly services: Services;
  readonly context: ApiContext;
  readonly checked: CheckedImageRequest;
  readonly admitted: Admitted | Attached;
}

async function sendAnswer({ services, context, checked, admitted }: ImageCall): Promise<void> {
  const { jobs } = services;
  const job =
    admitted.outcome === 'attached'
      ? jobs.attach(admitted, context.res)
      : enqueue(services, jobs.await(admitted.request, 'image', context.res), admitted.request, checked);
  const { bytes, giveBack } = await cancelWhenGone(context, job);
  try {
    const { header, body: images } = decodeResult(bytes, 'image');
    const links = createFileLinks(services);
    await sendBody(context, presentImages(admitted.requestId, header, images, links));
  } finally {
    giveBack();
  }
}

async function streamAnswer({ services, context, checked, admitted }: ImageCall): Promise<void> {
  const { jobs } = services;
  const stream = new SseStream(context.res);
  const start = (): StreamedJob =>
    admitted.outcome === 'attached'
      ? jobs.attachStream(admitted, stream)
      : enqueue(services, jobs.stream(admitted.request, 'image', stream), admitted.request, checked);
  try {
    stream.attach(start());
  } catch (error) {
    stream.fail(toAppError(error));
  }
  await stream.finished;
  if (stream.failure !== null) context.state.error = stream.failure;
  context.respond = false;
}

/** Puts the job on its queue, once it is its account's turn there. */
function enqueue<T extends Pick<AwaitedJob, 'whenLeft' | 'whenEnded' | 'markQueued' | 'fail'>>(
  { jobs, images, bulkShares }: Services,
  awaited: T,
  request: AdmittedRequest,
  checked: CheckedImageRequest,
): T {
  // Those that the account has under way go first, and so does an account with fewer: it waits for no crowd of another's.
  const underWay = jobs.countOf('image', request.accountId) - 1;
  const lane = chooseLane(underWay + 1);
  awaited.whenLeft(() => images[lane].dropPayload(request.requestId));
  const add = async (): Promise<void> => {
    if (lane === 'bulk') {
      const ended = new AbortController();
      awaited.whenEnded(() => ended.abort());
      await bulkShares.enter('image', request, ended.signal).granted;
    }
    if (!awaited.markQueued()) return;
    const job = createJob(request, checked, jobs.replyChannel);
    await images[lane].add(request.requestId, job, underWay);
  };
  add().catch((error: unknown) => {
    awaited.fail(toAppError(error));
  });
  return awaited;
}

const createJob = (
  request: AdmittedRequest,
  checked: CheckedImageRequest,
  replyChannel: string,
): ImageJob => ({ v: 1, kind: 'image', request, replyChannel, ...checked });
