import mongoose from 'mongoose';

const { MongoServerError } = mongoose.mongo;

/** AuthenticationFailed, and Atlas's equivalent. */
const rejectedLoginCodes: ReadonlySet<unknown> = new Set([18, 8_000]);
const unauthorizedCode = 13;

/**
 * Explains to the operator what to change if MongoDB rejects the user of `MONGODB_URL` or a command of that user.
 * @returns null for any other failure
 */
export function explainMongoError(error: unknown): string | null {
  if (!(error instanceof MongoServerError)) return null;
  if (rejectedLoginCodes.has(error.code))
    return (
      `MongoDB rejects the user or the password in MONGODB_URL: ${error.message} ` +
      'If the user was created in a different database than that of the URL, add authSource to the URL.'
    );
  if (error.code !== unauthorizedCode) return null;
  // MongoDB repeats the whole command after this.
  const [problem = ''] = error.message.split(' {', 1);
  return `The user in MONGODB_URL needs the role readWrite on the gateway's database: ${problem}.`;
}
