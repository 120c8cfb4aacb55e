import { S3ServiceException } from '@aws-sdk/client-s3';
import mongoose from 'mongoose';
import { explainRedisError } from '../../shared/platform/redis/explain-redis-error.ts';
import { explainMongoError } from '../../shared/platform/storage/explain-mongo-error.ts';

const { MongoServerSelectionError, MongoTopologyClosedError } = mongoose.mongo;

/**
 * Explains why a store rejects the gateway or does not respond, and which variable to check. The drivers' messages do
 * not.
 */
export function explainStoreFailure(error: unknown): string {
  // The message of `service_unavailable` is for callers and does not reveal which store is down.
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const mongoExplanation = explainMongoError(cause);
  if (mongoExplanation !== null) return mongoExplanation;
  const { message } = cause as Error;
  const redisExplanation = explainRedisError(message);
  if (redisExplanation !== null) return redisExplanation;
  if (cause instanceof MongoServerSelectionError || cause instanceof MongoTopologyClosedError)
    return `No primary found with MONGODB_URL (${message}). Check that it is running, and that the hosts and replicaSet are correct.`;
  // The response to HEAD has no body that could explain the rejection.
  if (cause instanceof S3ServiceException && cause.$metadata.httpStatusCode === 403)
    return (
      `S3_ENDPOINT rejects AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or denies them access to S3_BUCKET (403, ${message}). ` +
      'Check them and AWS_REGION, and that the key has the permissions listed in docs/deployment.md.'
    );
  return message;
}
