import type { ChatJob } from '../../shared/queue/job-kinds.ts';

/** A chat as far as it decides how the vendor is asked. */
export type AskedChat = Pick<ChatJob, 'body'> & { readonly request: Pick<ChatJob['request'], 'jobAttempt'> };

/**
 * Whether the vendor is asked to stream its answer. It is for every durable job, although its caller gets a whole answer: the
 * worker then knows what was generated so far, for the job's progress and for its charge if it is cancelled.
 */
export const isReadAsStream = ({ body, request }: AskedChat): boolean =>
  body.stream === true || request.jobAttempt !== undefined;
