import type { ChatJob } from '../../shared/work/queue/job-kinds.ts';

/** The parts of a chat that determine how the vendor is called. */
export type ChatCallInput = Pick<ChatJob, 'body'> & {
  readonly request: Pick<ChatJob['request'], 'jobAttempt'>;
};

/**
 * Whether the vendor's response is streamed. It is for every durable job, even though the caller gets a complete
 * response: the worker then knows what has been generated so far, for the job's progress and for its charge if it is
 * cancelled.
 */
export const isVendorStream = ({ body, request }: ChatCallInput): boolean =>
  body.stream === true || request.jobAttempt !== undefined;
