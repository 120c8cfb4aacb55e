import type { ChatJob } from '../../shared/queue/job-kinds.ts';

/** The parts of a chat that decide how the vendor is called. */
export type AskedChat = Pick<ChatJob, 'body'> & { readonly request: Pick<ChatJob['request'], 'jobAttempt'> };

/**
 * Whether the vendor streams its response. It does for every durable job, even though the caller gets a whole
 * response: the worker then knows what was generated so far, for the job's progress and for its charge on
 * cancellation.
 */
export const isReadAsStream = ({ body, request }: AskedChat): boolean =>
  body.stream === true || request.jobAttempt !== undefined;
