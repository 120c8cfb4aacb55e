import mongoose from 'mongoose';

const { MongoServerError } = mongoose.mongo;

/** AuthenticationFailed, and Atlas's equivalent. */
const refusedLoginCodes: ReadonlySet<unknown> = new Set([18, 8_000]);
const unauthorizedCode = 13;

/**
 * Tells the operator what to change if MongoDB rejects the user of `MONGODB_URL`, or what that user does.
 * @returns null for any other failure
 */
export function explainMongoRefusal(error: unknown): string | null {
  if (!(error instanceof MongoServerError)) return null;
  if (refusedLoginCodes.has(error.code))
    return (
      `MongoDB refuses the user or the password of MONGODB_URL: ${error.message} ` +
      'A user that was created in another database than the one that the URL names needs authSource in the URL.'
    );
  if (error.code !== unauthorizedCode) return null;
  // MongoDB repeats the whole command after this.
  const [refusal = ''] = error.message.split(' {', 1);
  return `The user of MONGODB_URL needs the role readWrite on the database of the gateway: ${refusal}.`;
}
