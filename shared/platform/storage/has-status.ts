import { S3ServiceException } from '@aws-sdk/client-s3';

/** Returns whether an error is S3's response with one of these HTTP statuses. */
export const hasStatus = (error: unknown, ...statuses: number[]): boolean =>
  error instanceof S3ServiceException && statuses.includes(error.$metadata.httpStatusCode ?? 0);
