import mongoose from 'mongoose';
import { callMongo, type MongoConnection } from '../platform/storage/mongo-client.ts';
import { createWebModels, type WebModels } from './web-models.ts';

/** The account area's documents, as models over the process's only connection pool. */
export interface WebDatabase {
  /**
   * Runs commands of the models.
   * @throws AppError `service_unavailable` if MongoDB is unavailable
   */
  call<T>(run: (models: WebModels) => Promise<T>): Promise<T>;
  /** For reads that last longer, such as a cursor. `call` covers only their start. */
  models(): Promise<WebModels>;
  /** Safe to repeat. */
  createIndexes(): Promise<void>;
}

/**
 * Opens the database without connecting. mongoose accepts a client only once it has connected, so the first command
 * connects it and creates the unique indexes. One of those ensures that an account has only one user. If MongoDB is
 * unavailable, that command fails within the client's two seconds, and the next one tries again. Once connected, the
 * client reconnects by itself. The models do not buffer commands, so they need no reconnect of their own.
 */
export function openWebDatabase(mongo: MongoConnection): WebDatabase {
  let unprepared: WebModels | null = null;
  let opened: WebModels | null = null;
  let opening: Promise<WebModels> | null = null;
  const open = async (): Promise<WebModels> => {
    await mongo.client.connect();
    unprepared ??= openModels(mongo);
    await createUniqueIndexes(unprepared);
    opened = unprepared;
    return opened;
  };
  const models = async (): Promise<WebModels> => {
    if (opened !== null) return opened;
    opening ??= open().finally(() => (opening = null));
    return await opening;
  };
  const call: WebDatabase['call'] = async (run) => await callMongo(async () => await run(await models()));
  return {
    call,
    models,
    async createIndexes() {
      await call(createIndexes);
    },
  };
}

/** If this fails, the account area's command fails. Workers create the other indexes and report failures. */
async function createUniqueIndexes({ users, links }: WebModels): Promise<void> {
  for (const { schema, collection } of [users, links]) {
    for (const [fields, options] of schema.indexes()) {
      if (options?.unique === true)
        await collection.createIndex(fields as Record<string, 1>, { unique: true });
    }
  }
}

async function createIndexes({ users, sessions, links, audit }: WebModels): Promise<void> {
  for (const model of [users, sessions, links, audit]) await model.createIndexes();
}

function openModels(mongo: MongoConnection): WebModels {
  // Use a separate instance, because the global one would keep every connection that was ever opened.
  const connection = new mongoose.Mongoose().createConnection().setClient(mongo.client);
  // Without this, a URL that does not specify a database would use the client's default, `test`.
  return createWebModels(connection.useDb(mongo.db.databaseName));
}
