import { EJSON } from 'bson';
import type { Database } from '../../shared/platform/storage/mongo-client.ts';

/** All documents in MongoDB, as one text to search. */
export async function readAllOfMongo(db: Database): Promise<string> {
  const collections = await db.listCollections().toArray();
  const all = collections.map(async ({ name }) => [name, await db.collection(name).find({}).toArray()]);
  return EJSON.stringify(await Promise.all(all));
}
