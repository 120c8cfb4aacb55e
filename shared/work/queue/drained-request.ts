import { AppError } from '../../contract/errors.ts';

/** The error of a request that the operator cancelled while it waited. */
export const createDrainedError = (): AppError =>
  new AppError('service_unavailable', {
    message:
      'The operator cancelled all requests that were waiting in this queue. You were not charged. Send the request again later.',
    expose: true,
    // OpenAI's clients would send it again at once.
    headers: { 'x-should-retry': 'false' },
  });
