import { S3ServiceException } from '@aws-sdk/client-s3';
import mongoose from 'mongoose';
import { explainRedisRefusal } from '../redis/explain-redis-refusal.ts';
import { explainMongoRefusal } from './explain-mongo-refusal.ts';

const { MongoServerSelectionError, MongoTopologyClosedError } = mongoose.mongo;

/** Explains why a store refuses or does not answer, and which variable to check. The drivers' own messages do not say that. */
export function explainStoreFailure(error: unknown): string {
  // The message of `service_unavailable` is for callers, who are not told which store is down.
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const refusal = explainMongoRefusal(cause);
  if (refusal !== null) return refusal;
  const { message } = cause as Error;
  const redisRefusal = explainRedisRefusal(message);
  if (redisRefusal !== null) return redisRefusal;
  if (cause instanceof MongoServerSelectionError || cause instanceof MongoTopologyClosedError)
    return `No primary is found by MONGODB_URL (${message}). Does it run, and are the hosts and replicaSet right?`;
  // A HEAD response has no body that could explain the refusal.
  if (cause instanceof S3ServiceException && cause.$metadata.httpStatusCode === 403)
    return (
      `S3_ENDPOINT refuses AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what they ask of S3_BUCKET (403, ${message}). ` +
      'Are they and AWS_REGION right, and has the key the rights that docs/deployment.md lists?'
    );
  return message;
}
