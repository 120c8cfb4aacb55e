import { randomBytes } from 'node:crypto';
import mongoose from 'mongoose';

const urlParts = /^(mongodb(?:\+srv)?:\/\/)([^/?]+)(?:\/([^?]*))?(?:\?(.*))?$/;

/** The URL of another database on the same server; users are still authenticated in the original URL's database. */
export function withDatabase(url: string, database: string): string {
  const [, scheme, authority, formerDatabase, query] = urlParts.exec(url) ?? [];
  if (authority === undefined) throw new Error('MONGODB_URL is not a MongoDB URL');
  const options = new URLSearchParams(query);
  if (authority.includes('@') && !options.has('authSource')) {
    options.set('authSource', formerDatabase || 'admin');
  }
  return `${scheme}${authority}/${database}${options.size === 0 ? '' : `?${options.toString()}`}`;
}

/** A database with a random name on a shared server; closing drops it. */
export function createTestDatabase(serverUrl: string): { url: string; close(): Promise<void> } {
  const url = withDatabase(serverUrl, `mg-test-${randomBytes(6).toString('hex')}`);
  return {
    url,
    async close() {
      const client = new mongoose.mongo.MongoClient(url, { serverSelectionTimeoutMS: 10_000 });
      try {
        await client.db().dropDatabase();
      } finally {
        await client.close();
      }
    },
  };
}
